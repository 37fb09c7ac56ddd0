/** What came in, as sums and over time, as people read it. */
import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { findBarriers, type Screens, untilWritten } from './open-screens.ts'
import { WRITTEN, writtenView } from './written-days.ts'

interface Summary {
  readonly count: number
  readonly sums: readonly { readonly measure: string; readonly symbol: string; readonly amount: string }[]
}

const filter = `fromDate=${WRITTEN.from}&toDate=${WRITTEN.to}&timeZone=UTC`
const colourOf = (page: Page, name: string) =>
  page
    .locator('.legend li', { hasText: name })
    .locator('.swatch')
    .evaluate((swatch) => getComputedStyle(swatch).backgroundColor)
const byCurrency = (rows: readonly (readonly string[])[]) =>
  Object.fromEntries(rows.map(([symbol, ...amounts]) => [symbol, amounts]))
const readout = (page: Page) => page.locator('.chart-read').innerText()

/** @param screens - read when a test runs */
export function trySums(screens: () => Screens): void {
  it('shows gross, refunded and net as the API adds them up, and failed payments beside them', async () => {
    await untilWritten(screens().call, 8)
    const summarize = (more: string) => screens().call<Summary>(`/v1/payments:summarize?${filter}&${more}`)
    const { count, sums } = await summarize('sums=AMOUNTS,REFUNDS,NET')
    const { count: failed } = await summarize('status=FAILED')
    const amountOf = (measure: string, symbol: string) =>
      sums.find((sum) => sum.measure === measure && sum.symbol === symbol)?.amount ?? '0'
    const page = await screens().open(writtenView)
    await page.getByRole('button', { name: /more currenc/ }).click()
    const rows = await page
      .locator('.sums-table tbody tr')
      .evaluateAll((all) =>
        all.map((row) => [
          row.querySelector('th')?.textContent ?? '',
          ...[...row.querySelectorAll('.amount')].map((amount) =>
            (amount as HTMLElement).title.replace(/[, A-Z]/g, ''),
          ),
        ]),
      )
    const symbols = [...new Set(sums.map(({ symbol }) => symbol))]
    const expected = symbols.map((symbol) => [
      symbol,
      ...['AMOUNTS', 'REFUNDS', 'NET'].map((measure) => amountOf(measure, symbol)),
    ])
    expect(byCurrency(rows)).toEqual(byCurrency(expected))
    expect(failed).toBeGreaterThan(0)
    await page
      .locator('.totals')
      .getByText(`${(count - failed).toLocaleString('en-US')} payments`)
      .waitFor()
    await page.getByRole('link', { name: `Not included: ${failed} failed payment` }).click()
    await page.locator('.totals').getByText(`${failed} failed payment`).waitFor()
    expect(new URL(page.url()).searchParams.getAll('status')).toEqual(['FAILED'])
    expect(await findBarriers(page)).toEqual([])
    await page.context().close()
  })

  it('says the numbers of a bar to who points, uses keys or touches, and has an axis', async () => {
    await untilWritten(screens().call, 8)
    const page = await screens().open(writtenView, { hasTouch: true })
    const bars = page.locator('.chart .bar')
    await bars.nth(6).waitFor()
    expect(await page.locator('.chart-ticks').innerText()).toMatch(/\$0\s+\$/)
    const whole = await readout(page)
    await bars.nth(2).hover()
    const pointed = await readout(page)
    expect(pointed).not.toBe(whole)
    const slider = page.getByRole('slider', { name: 'Payments over time' })
    expect(await slider.getAttribute('aria-valuetext')).toContain(pointed.split(':')[0]?.split(' 2026')[0])
    await page.mouse.move(0, 0)
    await slider.focus()
    await page.keyboard.press('Home')
    await page.keyboard.press('ArrowRight')
    await page.keyboard.press('ArrowRight')
    expect(await readout(page)).toBe(pointed)
    const place = page.url()
    await page.locator('h1').click()
    await bars.nth(1).tap()
    expect(page.url()).toBe(place)
    expect(await readout(page)).not.toBe(whole)
    const touched = await readout(page)
    await bars.nth(1).tap()
    await expect.poll(() => new URL(page.url()).searchParams.get('from')).not.toBe(WRITTEN.from)
    await expect.poll(() => bars.count()).toBe(1)
    expect(await readout(page)).toBe(touched)
    await page.context().close()
  })

  it('gives a network the same colour whatever is filtered and shown', async () => {
    const page = await screens().open(`${writtenView}&split=network`)
    await page.locator('.legend li').nth(3).waitFor()
    const before = await colourOf(page, 'BSC')
    for (const more of ['&network=BSC', '&by=day&measure=count', '&status=REFUNDED&by=month']) {
      await page.goto(new URL(writtenView + more, page.url()).href)
      await expect.poll(() => colourOf(page, 'BSC')).toBe(before)
    }
    await page.context().close()
  })
}
