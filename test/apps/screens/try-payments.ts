/** The list of payments as people use it, and what they complained about in others' lists. */
import { randomUUID } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { runWaybill } from '../../support/process.ts'
import { findBarriers, isTooWide, picture, type Screens, untilWritten } from './open-screens.ts'
import { isoDay, WRITTEN, writtenView } from './written-days.ts'

interface Imported {
  readonly reference: string
  readonly timestamp: string
  readonly txHash?: string
  readonly payer?: string
}

interface Shown {
  readonly id: string
  readonly payer?: string
  readonly payee?: string
}

const DAY_MS = 86_400_000

/** Imports payments as a merchant would. */
async function importPayments({ environment, dataDir }: Screens, payments: readonly Imported[]): Promise<void> {
  const file = join(dataDir, '..', `${randomUUID()}.ndjson`)
  const lines = payments.map((payment) =>
    JSON.stringify({
      id: randomUUID(),
      amount: '12.5',
      currency: 'USDC-ETHEREUM',
      network: 'ETHEREUM',
      status: 'CONFIRMED',
      ...payment,
    }),
  )
  await writeFile(file, lines.join('\n'))
  const { code, stderr } = await runWaybill(['import', 'payments', file, '--account', 'demo'], environment)
  expect(stderr).not.toContain('bad line')
  expect(code).toBe(0)
}

const rowsOf = (page: Page) => page.locator('table.payments tbody tr')
const chipsOf = (page: Page) => page.locator('.chip-value').allInnerTexts()
const search = async (page: Page, text: string) => {
  await page.getByRole('combobox', { name: 'Search payments' }).fill(text)
  await page.keyboard.press('Enter')
}

/** @param screens - read when a test runs */
export function tryPayments(screens: () => Screens): void {
  tryList(screens)
  trySorts(screens)
  tryRanges(screens)
  trySearches(screens)
  tryTail(screens)
  tryFaults(screens)
}

function tryList(screens: () => Screens): void {
  it('shows the newest payments, what they sum up to, and no barrier, light and dark, wide and narrow', async () => {
    for (const [colorScheme, width] of [
      ['light', 1280],
      ['dark', 320],
    ] as const) {
      const page = await screens().open('/console', { colorScheme, viewport: { width, height: 900 } })
      await rowsOf(page).nth(20).waitFor()
      await page.locator('.chart .bar').first().waitFor()
      expect(await isTooWide(page)).toBe(false)
      expect(await findBarriers(page)).toEqual([])
      if (width === 1280) await picture(page, 'payments')
      await page.context().close()
    }
  })
}

function trySorts(screens: () => Screens): void {
  it('sorts by a column, shows of each payment what the service says, and copies an address whole with one click', async () => {
    await untilWritten(screens().call, 8)
    const page = await screens().open(writtenView)
    const header = page.getByRole('columnheader', { name: 'Amount' })
    for (const [order, column] of [
      ['DESC', 'descending'],
      ['ASC', 'ascending'],
    ] as const) {
      const path = `/payments?sortBy=AMOUNT&sortOrder=${order}&limit=50&fromDate=${WRITTEN.from}&toDate=${WRITTEN.to}T23:59:59.999Z`
      const { payments } = await screens().call<{ payments: readonly Shown[] }>(path)
      await header.getByRole('button').click()
      await page.locator(`th[aria-sort="${column}"]`, { hasText: 'Amount' }).waitFor()
      await page.locator(`table.payments tbody tr:first-child a[href$="${payments[0]?.id}"]`).waitFor()
      const rows = await rowsOf(page).evaluateAll((all) =>
        all.map((row) => ({
          link: row.querySelector('a')?.getAttribute('href'),
          copies: [...row.querySelectorAll('button')].map(({ title }) => title),
        })),
      )
      expect(rows).toEqual(
        payments.map(({ id, payer, payee }) => ({
          link: `/console/payments/${id}`,
          copies: [payer, payee].filter((each) => each !== undefined),
        })),
      )
    }
    const copy = rowsOf(page)
      .getByRole('button', { name: /^Copy 0x/ })
      .first()
    const address = await copy.getAttribute('title')
    await copy.click()
    await page.getByRole('status').getByText('Copied', { exact: true }).waitFor()
    expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(address)
    await page.getByRole('status').getByText('Copied', { exact: true }).waitFor({ state: 'detached' })
    await page.context().close()
  })
}

function tryRanges(screens: () => Screens): void {
  it('1. hides nothing behind a range that nobody chose: a payment of 400 days ago shows', async () => {
    const reference = `old-${randomUUID()}`
    await importPayments(screens(), [{ reference, timestamp: ago(400 * DAY_MS) }])
    const page = await screens().open('/console')
    await search(page, reference)
    await rowsOf(page).getByText(reference).waitFor()
    expect(await chipsOf(page)).toEqual([reference])
    await page.context().close()
  })

  it('2. keeps the range while a payment is looked at', async () => {
    await untilWritten(screens().call, 8)
    const page = await screens().open(`${writtenView}&status=CONFIRMED`)
    const chips = [WRITTEN.from, WRITTEN.to, 'Confirmed']
    await rowsOf(page).first().locator('.row-link').click()
    await page.getByText('Timeline').waitFor()
    await page.getByRole('link', { name: 'Payments', exact: true }).first().click()
    await rowsOf(page).first().waitFor()
    expect(await chipsOf(page)).toEqual(chips)
    await page.goBack()
    await page.goBack()
    expect(await chipsOf(page)).toEqual(chips)
    await page.context().close()
  })

  it('3. has one day for a payment of 23:30Z seen from Kolkata: in row, bar, filter and link', async () => {
    const day = new Date(Date.now() - 3 * DAY_MS)
    const [utc, local] = [isoDay(day), isoDay(new Date(day.getTime() + DAY_MS))]
    const reference = `zone-${randomUUID()}`
    await importPayments(screens(), [{ reference, timestamp: `${utc}T23:30:00Z` }])
    const page = await screens().open(`/console/payments?reference=${reference}&by=day`, {
      timezoneId: 'Asia/Kolkata',
      locale: 'en-GB',
    })
    const shown = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeZone: 'UTC' }).format(new Date(local))
    expect(await rowsOf(page).locator('time').innerText()).toContain(shown)
    await page.locator('.chart .bar').first().hover()
    await expect.poll(() => page.locator('.chart-read').innerText()).toContain(shown)
    await page.locator('.chart .bar').first().click()
    await expect.poll(() => page.url()).toMatch(new RegExp(`from=${local}&to=${local}&zone=Asia%2F(Kolkata|Calcutta)`))
    await rowsOf(page).getByText(reference).waitFor()
    const elsewhere = await screens().open(new URL(page.url()).pathname + new URL(page.url()).search, {
      timezoneId: 'UTC',
    })
    await rowsOf(elsewhere).getByText(reference).waitFor()
    await Promise.all([page, elsewhere].map((each) => each.context().close()))
  })
}

function trySearches(screens: () => Screens): void {
  it('4. sets the same filter once, and Enter takes the first suggestion instead of opening the menu', async () => {
    const page = await screens().open('/console')
    const box = page.getByRole('combobox', { name: 'Search payments' })
    for (const _ of [1, 2]) {
      await box.fill('failed')
      await page.keyboard.press('ArrowDown')
      await page.keyboard.press('Enter')
    }
    expect(await chipsOf(page)).toEqual(['Failed'])
    await box.fill('INV')
    await page.keyboard.press('Enter')
    await expect.poll(() => chipsOf(page)).toEqual(['INV', 'Failed'])
    expect(page.url()).toContain('referencePrefix=INV')
    expect(await page.getByRole('listbox').isVisible()).toBe(false)
    await page.getByRole('row', { name: 'Your reference begins with INV', exact: true }).focus()
    await page.keyboard.press('Delete')
    await expect.poll(() => chipsOf(page)).toEqual(['Failed'])
    await page.context().close()
  })

  it.each([
    ['pending', 'status=PENDING'],
    ['yesterday', `from=${isoDay(new Date(Date.now() - DAY_MS))}&to=${isoDay(new Date(Date.now() - DAY_MS))}`],
    ['POLYGON', 'network=POLYGON'],
    ['2026-11-20', 'from=2026-11-20&to=2026-11-20'],
    ['order-poly', 'referencePrefix=order-poly'],
    ['>19,90', 'minAmount=19.90'],
  ])('takes the filter that %s and Enter mean, at once after the page has come', async (typed, filter) => {
    const page = await screens().open('/console', { timezoneId: 'UTC' })
    await search(page, typed)
    await expect.poll(() => page.url()).toContain(`?${filter}`)
    await page.context().close()
  })

  it('takes one filter after another without a click between, and two at once', async () => {
    const page = await screens().open('/console', { timezoneId: 'UTC' })
    await page.locator('a.wrong').waitFor()
    await search(page, 'refunded')
    await expect.poll(() => chipsOf(page)).toEqual(['Refunded'])
    // Failed payments are none of those that were refunded.
    await expect.poll(() => page.locator('a.wrong').count()).toBe(0)
    await page.keyboard.type('2026-10')
    await page.keyboard.press('Enter')
    await expect.poll(() => chipsOf(page)).toEqual(['2026-10-01', '2026-10-31', 'Refunded'])
    await page.getByRole('button', { name: 'Clear filters' }).click()
    await search(page, 'failed yesterday')
    const yesterday = isoDay(new Date(Date.now() - DAY_MS))
    await expect.poll(() => chipsOf(page)).toEqual([yesterday, yesterday, 'Failed'])
    await page.context().close()
  })

  it('leads from an order that nobody paid to its request, also by a part of its reference', async () => {
    const page = await screens().open('/console')
    await search(page, 'demo-exp1')
    await page.getByText('No matching payments').waitFor()
    await page.getByRole('link', { name: 'Search everywhere for “demo-exp1”' }).waitFor()
    await page.getByRole('link', { name: 'Look for a request “demo-exp1”, paid or not' }).click()
    await page.getByRole('link', { name: 'Search payments for “demo-exp1”' }).waitFor()
    expect(await findBarriers(page)).toEqual([])
    const box = page.getByRole('searchbox', { name: 'Find a request' })
    await box.fill('EXPIRED')
    await box.press('Enter')
    await page.getByText('No request has the reference “EXPIRED”').waitFor()
    await page.getByRole('link', { name: 'demo-expired' }).click()
    await page.getByText('It can no longer be paid through its link.').waitFor()
    await page.context().close()
  })

  it('5. finds a hash, a reference, a wallet and an order number that are pasted bare', async () => {
    const txHash = `0x${randomUUID().replaceAll('-', '').repeat(2)}`
    const payer = '0x00000000000000000000000000000000DeaDBeef'
    const reference = `order ${randomUUID()}`
    await importPayments(screens(), [{ reference, txHash, payer, timestamp: ago(60_000) }])
    for (const text of [txHash, payer, reference, payer.toLowerCase()]) {
      const page = await screens().open('/console')
      await search(page, `  ${text} `)
      await expect.poll(() => rowsOf(page).count()).toBe(1)
      await rowsOf(page).getByText(reference).waitFor()
      await page.context().close()
    }
  })
}

function tryTail(screens: () => Screens): void {
  it('6. moves nothing while text is selected and 50 payments arrive, and says so', async () => {
    const page = await screens().open('/console')
    const row = rowsOf(page).nth(2)
    await row.waitFor()
    await page.locator('.tail.is-live').waitFor()
    await page.locator('.totals').waitFor()
    await page.evaluate(() => {
      const cell = document.querySelectorAll('table.payments tbody tr')[2]!.lastElementChild!
      getSelection()!.selectAllChildren(cell)
    })
    // A payment may be confirmed meanwhile, which changes a word of its row.
    const placeOf = async () => [await row.getByRole('link').first().getAttribute('href'), await row.boundingBox()]
    const before = await placeOf()
    const soon = new Date(Date.now() + 1_000).toISOString()
    await importPayments(
      screens(),
      Array.from({ length: 50 }, (_, n) => ({ reference: `tail-${n}`, timestamp: soon })),
    )
    // The demo may add one meanwhile.
    await page.getByText(/Paused, 5[01] new/).waitFor()
    expect(await placeOf()).toEqual(before)
    await page.getByRole('button', { name: 'Show' }).click()
    await rowsOf(page).first().getByText(/tail-/).waitFor()
    await page.context().close()
  })

  it('7. shows the same to whoever opens the link in another browser', async () => {
    await untilWritten(screens().call, 8)
    const first = await screens().open(writtenView)
    await first.getByRole('combobox', { name: 'Search payments' }).fill('BSC')
    await first.getByRole('option').filter({ hasText: 'Network' }).first().click()
    await first.getByRole('button', { name: 'Amount' }).click()
    await expect.poll(() => first.url()).toContain('sortBy=amount')
    await first.locator('section[aria-busy="false"] table.payments').waitFor()
    const { pathname, search: query } = new URL(first.url())
    const second = await screens().open(pathname + query)
    await expect.poll(() => rowsOf(second).allInnerTexts()).toEqual(await rowsOf(first).allInnerTexts())
    await Promise.all([first, second].map((each) => each.context().close()))
  })
}

function tryFaults(screens: () => Screens): void {
  it('saves the view as CSV, all pages of it', async () => {
    const page = await screens().open('/console/payments?network=ETHEREUM')
    const saved = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Export CSV' }).click()
    const [file] = await Promise.all([saved, page.getByText(/payments saved/).waitFor()])
    expect(file.suggestedFilename()).toMatch(/^payments-\d{4}-\d\d-\d\d\.csv$/)
    const { total } = (
      await screens().call<{ pagination: { total: number } }>('/payments?network=ETHEREUM&limit=1&includeTotal=exact')
    ).pagination
    const lines = await readLines(await file.path())
    expect(lines[0]).toMatch(/^id,/)
    expect(Math.abs(lines.length - 1 - total)).toBeLessThan(20)
    await page.context().close()
  })

  it('says what is wrong with a filter of the link, and a key that is refused asks for another', async () => {
    const page = await screens().open('/console/payments?network=NOWHERE')
    await page
      .getByRole('alert')
      .first()
      .getByText(/NOWHERE/)
      .first()
      .waitFor()
    await page.evaluate(() => sessionStorage.setItem('waybill.key', `wb_${'0'.repeat(40)}`))
    await page.reload()
    await page.getByRole('heading', { name: 'Waybill console' }).waitFor()
    await page.getByText('This key is invalid').waitFor()
    expect(await findBarriers(page)).toEqual([])
    await page.getByLabel('API key').fill('demo')
    await page.keyboard.press('Enter')
    await page.getByRole('alert').first().waitFor()
    await page.context().close()
  })
}

async function readLines(path: string): Promise<string[]> {
  const { readFile } = await import('node:fs/promises')
  return (await readFile(path, 'utf8')).trim().split('\n')
}

const ago = (ms: number) => new Date(Math.floor((Date.now() - ms) / 1_000) * 1_000).toISOString()
