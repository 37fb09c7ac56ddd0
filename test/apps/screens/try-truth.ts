/** What the console says of itself: while the service is away, when a page fails, on a slow line. */
import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { findBarriers, isTooWide, type Screens } from './open-screens.ts'

const close = (page: Page) => page.context().close()
/** Slow 3G: 400 kbit/s, 400 ms. */
const SLOW_3G = { offline: false, latency: 400, downloadThroughput: 50_000, uploadThroughput: 50_000 }
const PAINT_MS = 2_000

/** @param screens - read when a test runs */
export function tryTruth(screens: () => Screens): void {
  it.each([
    ['/console/payments', 'table.payments tbody tr'],
    ['/console/requests', '.request-table tbody tr'],
    ['/console/chains', '.chain'],
  ])(
    'says at %s how old what it shows is while the service is away, keeps it, and shows nothing green',
    async (path, rows) => {
      const page = await screens().open(path, { locale: 'en-GB' })
      await page.locator(rows).first().waitFor()
      const green = () => page.locator('.frame').evaluate((frame) => getComputedStyle(frame).getPropertyValue('--good'))
      const before = await green()
      await page.context().setOffline(true)
      const banner = page.getByRole('alert').filter({ hasText: 'The service is not responding.' })
      await banner.waitFor({ timeout: 15_000 })
      expect(await banner.innerText()).toMatch(/What you see is as of \d+ \w+ \d{4}, \d\d:\d\d:\d\d\./)
      expect(await page.locator(rows).count()).toBeGreaterThan(0)
      expect(await green()).not.toBe(before)
      expect(await page.getByText('Live', { exact: true }).isVisible()).toBe(false)
      expect(await findBarriers(page)).toEqual([])
      await page.setViewportSize({ width: 320, height: 700 })
      expect(await isTooWide(page)).toBe(false)
      await page.context().setOffline(false)
      await banner.waitFor({ state: 'detached', timeout: 15_000 })
      expect(await green()).toBe(before)
      await close(page)
    },
  )

  it('keeps its frame when a page fails, and offers the way back', async () => {
    const page = await screens().open('/console/payments')
    await page.locator('table.payments tbody tr').first().waitFor()
    // No time can be written, as on a page whose code is wrong.
    await page.evaluate(() => {
      const { prototype } = Intl.DateTimeFormat
      const whole = Object.getOwnPropertyDescriptor(prototype, 'format') ?? {}
      const fail = () => {
        throw new Error('made to fail')
      }
      Object.defineProperty(prototype, 'format', { configurable: true, get: fail })
      Object.assign(window, {
        mend: () => Object.defineProperty(prototype, 'format', whole),
      })
    })
    await page.getByRole('navigation').getByRole('link', { name: 'Requests' }).click()
    await page.getByRole('heading', { name: 'This page failed' }).waitFor()
    expect(await findBarriers(page)).toEqual([])
    expect(await page.getByRole('button', { name: 'Reload' }).isVisible()).toBe(true)
    await page.evaluate(() => (window as unknown as { mend: () => void }).mend())
    await page.getByRole('button', { name: 'Back' }).click()
    await page.locator('table.payments tbody tr').first().waitFor()
    await page.getByRole('navigation').getByRole('link', { name: 'Requests' }).click()
    await page.locator('.request-table').waitFor()
    await close(page)
    // React logs what was made to fail.
    screens().faults.splice(0, Infinity, ...screens().faults.filter((said) => !said.includes('made to fail')))
  })

  it('says of a page whose code does not come that the service may be away, and loads it once that is back', async () => {
    const page = await screens().open('/console/payments')
    await page.locator('table.payments tbody tr').first().waitFor()
    await page.context().setOffline(true)
    await page.getByRole('navigation').getByRole('link', { name: 'Requests' }).click()
    await page.getByRole('heading', { name: 'This page could not be loaded' }).waitFor()
    expect(await page.locator('main').innerText()).not.toContain('module')
    expect(await page.getByRole('button', { name: 'Reload' }).isVisible()).toBe(true)
    expect(await findBarriers(page)).toEqual([])
    await page.getByText('The service is not responding.').waitFor({ timeout: 15_000 })
    await page.context().setOffline(false)
    await page.locator('.request-table').waitFor({ timeout: 15_000 })
    await close(page)
    // React logs what was caught.
    screens().faults.splice(0, Infinity, ...screens().faults.filter((said) => !said.includes('could not be loaded')))
  })

  it('paints its frame within 2 seconds on a slow line', async () => {
    const page = await screens().open('/console/payments', {}, async (opened) => {
      const session = await opened.context().newCDPSession(opened)
      await session.send('Network.enable')
      await session.send('Network.emulateNetworkConditions', SLOW_3G)
    })
    const paint = () =>
      page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? Infinity)
    await expect.poll(paint).toBeLessThan(PAINT_MS)
    await page.locator('table.payments tbody tr').first().waitFor({ timeout: 60_000 })
    await close(page)
  })
}
