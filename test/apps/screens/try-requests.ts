/** One payment and the requests, as people use them. */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { findBarriers, isTooWide, payPending, type Screens } from './open-screens.ts'

interface StoredRequest {
  readonly paymentReference: string
  readonly status: string
}

const PAYEE = '0x4e794Fd63b0b0c2F318275C744f055678Ff1dc41'

const badges = (page: Page) => page.locator('h1 .badge').allInnerTexts()
const close = (page: Page) => page.context().close()

/** Looks at a page as it is, and again dark and narrow. */
async function expectNoBarriers(page: Page): Promise<void> {
  expect([page.url(), await findBarriers(page)]).toEqual([page.url(), []])
  await page.emulateMedia({ colorScheme: 'dark' })
  await page.setViewportSize({ width: 320, height: 800 })
  expect([page.url(), await findBarriers(page), await isTooWide(page)]).toEqual([page.url(), [], false])
}

/** @param screens - read when a test runs */
export function tryRequests(screens: () => Screens): void {
  const create = (more: object = {}) =>
    screens().call<StoredRequest>('/v1/request', {
      payee: PAYEE,
      amount: '12.5',
      invoiceCurrency: 'USDC',
      paymentCurrency: 'USDC-ETHEREUM',
      reference: `try-${randomUUID()}`,
      ...more,
    })
  const findRequest = async (reference: string) => {
    const { requests } = await screens().call<{ requests: StoredRequest[] }>(`/v1/request?reference=${reference}`)
    return requests[0]?.paymentReference ?? ''
  }
  const findPayment = async (filter: string) => {
    const { payments } = await screens().call<{ payments: { id: string }[] }>(`/payments?limit=1&${filter}`)
    return payments[0]?.id ?? ''
  }
  tryNewRequest(screens)
  tryStates(screens, { create, findRequest })
  tryPayment(screens, findPayment)

  it('has no barrier and fits its window: the list, one request, a new one', async () => {
    const part = await findRequest('demo-partially-paid')
    for (const path of ['', '?status=EXPIRED', `/${part}`, '/new']) {
      const page = await screens().open(`/console/requests${path}`)
      await page.locator('table, .empty, form.request-form').first().waitFor()
      await expectNoBarriers(page)
      await close(page)
    }
  })

  it.each([
    ['Expired', 'demo-expired'],
    ['Cancelled', 'demo-cancelled'],
  ])('lists under %s what nobody is to pay any more', async (tab, reference) => {
    const page = await screens().open('/console/requests')
    await page.getByRole('navigation', { name: 'Requests by state' }).getByText(tab).click()
    await page.locator('tbody').getByRole('link', { name: reference }).click()
    await page.getByRole('heading', { name: 'Its payments' }).waitFor()
    expect(await badges(page)).toContain(tab)
    await close(page)
  })

  it('goes back to the tab from which a request was opened', async () => {
    const page = await screens().open('/console/requests')
    await page.getByRole('navigation', { name: 'Requests by state' }).getByText('Partially paid').click()
    await page.locator('tbody').getByRole('link', { name: 'demo-partially-paid' }).click()
    await page.getByRole('heading', { name: 'Its payments' }).waitFor()
    await page.locator('main > a').click()
    await expect.poll(() => page.url()).toContain('/console/requests?status=PARTIALLY_PAID')
    expect(await page.locator('.tab[aria-current]').innerText()).toBe('Partially paid')
    await close(page)
  })

  it('finds a request by its reference, request id and payment reference pasted bare', async () => {
    const paymentReference = await findRequest('demo-partially-paid')
    const { requestId } = await screens().call<{ requestId: string }>(`/v1/request/${paymentReference}`)
    const page = await screens().open('/console/requests')
    for (const text of ['demo-partially-paid', requestId, paymentReference, paymentReference.slice(2).toUpperCase()]) {
      await page.getByRole('searchbox').fill(text)
      await page.keyboard.press('Enter')
      await expect.poll(() => page.locator('tbody tr').count()).toBe(1)
      expect(await page.locator('tbody a').innerText()).toBe('demo-partially-paid')
    }
    await page.getByRole('searchbox').fill('no-such-reference')
    await page.keyboard.press('Enter')
    await page.getByText('No request matches “no-such-reference”').waitFor()
    await close(page)
  })
}

function tryNewRequest(screens: () => Screens): void {
  it('creates a request by keyboard, shows its link, and cancels it after asking', async () => {
    const reference = `try-${randomUUID()}`
    const page = await screens().open('/console/requests')
    await page.getByRole('link', { name: 'New request' }).press('Enter')
    await page.getByRole('textbox', { name: 'Amount' }).fill('12.50')
    await page.locator('datalist option[value="USDC-ETHEREUM"]').waitFor({ state: 'attached' })
    await page.getByRole('combobox', { name: 'Paid in' }).fill('USDC-ETHEREUM')
    await page.keyboard.press('Tab')
    await page.getByRole('combobox', { name: 'Payee' }).fill(PAYEE)
    await page.keyboard.press('Tab')
    await page.getByRole('textbox', { name: 'Your reference' }).fill(reference)
    // Twice, as people do.
    await page.getByRole('button', { name: 'Create request' }).dblclick()
    await page.getByRole('heading', { name: 'Request created' }).waitFor()
    expect(await page.locator('.pay-link').innerText()).toMatch(/\/pay\/0x[0-9a-f]{16}\?key=wbp_(demo){10}$/)
    const { requests } = await screens().call<{ requests: object[] }>(`/v1/request?reference=${reference}`)
    expect(requests).toHaveLength(1)

    await page.getByRole('link', { name: 'Open the request' }).click()
    await expect.poll(() => badges(page)).toEqual(['Open'])
    const asked: string[] = []
    page.on('dialog', (dialog) => {
      asked.push(dialog.message())
      void (asked.length === 1 ? dialog.dismiss() : dialog.accept())
    })
    await page.getByRole('button', { name: 'Cancel request' }).click()
    expect(asked[0]).toMatch(/^Cancel this request\? .* This cannot be undone\.$/)
    expect(await badges(page)).toEqual(['Open'])
    await page.getByRole('button', { name: 'Cancel request' }).click()
    await expect.poll(() => badges(page)).toEqual(['Cancelled'])
    await page.locator('main > a').click()
    await page.getByRole('navigation', { name: 'Requests by state' }).getByText('Cancelled').click()
    await page.locator('tbody').getByRole('link', { name: reference }).waitFor()
    await page.getByRole('navigation', { name: 'Requests by state' }).getByText('Open', { exact: true }).click()
    await page.locator('.request-list[aria-busy="false"]').waitFor()
    expect(await page.locator('tbody').getByRole('link', { name: reference }).count()).toBe(0)
    await close(page)
  })

  it('takes the decimals of the viewer, and asks where an amount may mean two', async () => {
    const reference = `try-${randomUUID()}`
    const page = await screens().open('/console/requests/new', { locale: 'de-DE' })
    const amount = page.getByRole('textbox', { name: 'Amount' })
    await page.getByRole('combobox', { name: 'Paid in' }).fill('USDC-ETHEREUM')
    await page.keyboard.press('Tab')
    await page.getByRole('combobox', { name: 'Payee' }).fill(PAYEE)
    await page.keyboard.press('Tab')
    await page.getByRole('textbox', { name: 'Your reference' }).fill(reference)
    await amount.fill('1.234')
    await page.getByRole('button', { name: 'Create request' }).click()
    await page.getByText('Is this 1234 or 1,234?').waitFor()
    await expect.poll(() => amount.evaluate((input) => document.activeElement === input)).toBe(true)
    await amount.fill('19,90')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Request created' }).waitFor()
    const { requests } = await screens().call<{ requests: { amount: string }[] }>(`/v1/request?reference=${reference}`)
    expect(requests.map(({ amount: stored }) => stored)).toEqual(['19.9'])
    await close(page)
  })

  it('says at each field what is wrong, and warns of what nobody can pay', async () => {
    const page = await screens().open('/console/requests/new')
    await page.getByRole('combobox', { name: 'Payee' }).fill('0x12')
    await page.keyboard.press('Tab')
    await page.getByRole('button', { name: 'Create request' }).click()
    const amount = page.getByRole('textbox', { name: 'Amount' })
    await expect.poll(() => amount.evaluate((input) => document.activeElement === input)).toBe(true)
    expect(await page.locator('.wrong:visible').allInnerTexts()).toEqual([
      'Required.',
      'Required.',
      'This address is incomplete or mistyped. Copy it again.',
    ])
    expect(await findBarriers(page)).toEqual([])
    await amount.fill('5')
    await page.getByRole('combobox', { name: 'Payee' }).fill(PAYEE)
    await page.keyboard.press('Tab')
    await page.getByRole('combobox', { name: 'Paid in' }).fill('USDC-BSC')
    await page.keyboard.press('Tab')
    await page.getByRole('combobox', { name: 'Invoice currency' }).fill('NOK')
    await page.keyboard.press('Tab')
    await page.getByRole('button', { name: 'Create request' }).click()
    await page.getByRole('heading', { name: 'This request cannot be paid as it is' }).waitFor()
    expect(await page.locator('.notice.warn').innerText()).toContain('No conversion of NOK into USDC')
    await close(page)
  })
}

interface Made {
  readonly create: (more?: object) => Promise<StoredRequest>
  readonly findRequest: (reference: string) => Promise<string>
}

function tryStates(screens: () => Screens, { create, findRequest }: Made): void {
  it('9. has words of its own for each state, what is left, and the next step', async () => {
    const expired = await create({ expiresAt: new Date(Date.now() + 700).toISOString() })
    const cancelled = await create()
    await screens().call(`/v1/request/${cancelled.paymentReference}:cancel`, {})
    const [part, over, paid] = await Promise.all(['demo-partially-paid', 'demo-overpaid', 'demo-paid'].map(findRequest))
    const page = await screens().open('/console/requests')
    const seen: string[] = []
    for (const [reference, words, next, left] of [
      [part, ['Partially paid'], 'The same link asks for the rest', /180\sUSDC-ARBITRUM/],
      [over, ['Paid', 'Overpaid'], 'Refund the overpayment to the payer', /30\sUSDC-ETHEREUM/],
      [paid, ['Paid'], 'Nothing left to do', /0\sDAI-BSC/],
      [cancelled.paymentReference, ['Cancelled'], 'It can no longer be paid through its link', /12\.5\sUSDC-ETHEREUM/],
      [expired.paymentReference, ['Expired'], 'Create a new request', /12\.5\sUSDC-ETHEREUM/],
    ] as const) {
      await page.goto(new URL(`/console/requests/${reference}`, page.url()).href)
      await expect.poll(() => badges(page)).toEqual(words)
      const says = await page.locator('.payment-lead').innerText()
      expect(says).toContain(next)
      expect(await page.locator('.amounts').innerText()).toMatch(left)
      seen.push(says)
    }
    expect(new Set(seen).size).toBe(seen.length)
    await close(page)
  })

  it('adds up what is still to be paid, and lists the overpaid, expired and cancelled by their tabs', async () => {
    const inKronur = { invoiceCurrency: 'ISK', amount: '12.5' }
    const [, expired, cancelled] = await Promise.all([
      create(inKronur),
      create({ ...inKronur, expiresAt: new Date(Date.now() + 700).toISOString() }),
      create(inKronur),
    ])
    await screens().call(`/v1/request/${cancelled.paymentReference}:cancel`, {})
    await sleep(700)
    const over = await findRequest('demo-overpaid')
    const page = await screens().open('/console/requests')
    const sum = page.locator('.sum').filter({ hasText: 'ISK' })
    await expect.poll(() => sum.innerText()).toMatch(/^12\.5\sISK\s+of 1 request$/)
    const lists = (request: StoredRequest | string) => {
      const reference = typeof request === 'string' ? request : request.paymentReference
      return page.locator(`tbody a[href$="/requests/${reference}"]`).count()
    }
    for (const [tab, ...counts] of [
      ['Overpaid', 1, 0, 0],
      ['Expired', 0, 1, 0],
      ['Cancelled', 0, 0, 1],
    ] as const) {
      await page.getByRole('navigation', { name: 'Requests by state' }).getByText(tab).click()
      await page.locator('.tab[aria-current]').getByText(tab).waitFor()
      await expect.poll(() => Promise.all([over, expired, cancelled].map(lists))).toEqual(counts)
    }
    await close(page)
  })

  it('8. shows what arrived while the page was hidden and cut off within 2 s of coming back', async () => {
    const { paymentReference } = await create({
      invoiceCurrency: 'ETH',
      paymentCurrency: 'ETH-ETHEREUM',
      amount: '0.01',
    })
    const page = await screens().open(`/console/requests/${paymentReference}`)
    await expect.poll(() => badges(page)).toEqual(['Open'])
    await show(page, 'hidden')
    await page.context().setOffline(true)
    await payFromDemo(screens(), paymentReference)
    expect(await badges(page)).toEqual(['Open'])
    await page.context().setOffline(false)
    await show(page, 'visible')
    const timeout = 2_000
    await expect.poll(() => badges(page), { timeout, interval: 50 }).not.toEqual(['Open'])
    await page.locator('tbody a').first().waitFor({ timeout })
    await close(page)
  })
}

/** Tells a page that it can, or cannot, be seen. */
function show(page: Page, state: 'hidden' | 'visible'): Promise<unknown> {
  return page.evaluate((visibilityState) => {
    Object.defineProperty(document, 'visibilityState', { configurable: true, get: () => visibilityState })
    document.dispatchEvent(new Event('visibilitychange'))
  }, state)
}

interface OfferedWallet {
  readonly name: string
  readonly address: string
}

interface Calldata {
  readonly transactions: readonly { readonly chainId: string }[]
}

/** Pays from a wallet of the demo as its page would, and waits until the service has found it. */
async function payFromDemo(screens: Screens, paymentReference: string): Promise<void> {
  // The wallets of the demo answer its own pages alone.
  const page = await screens.open('/console/chains')
  const wallets = (await page.evaluate(async () => (await fetch('/demo/wallets')).json())) as OfferedWallet[]
  const [{ name, address } = { name: '', address: '' }] = wallets
  const { transactions } = await screens.call<Calldata>(`/v1/request/${paymentReference}/pay?wallet=${address}`)
  for (const transaction of transactions) {
    const body = { method: 'eth_sendTransaction', params: [transaction], chainId: transaction.chainId }
    const answer = await page.evaluate(
      async ([path, text]) => {
        const headers = { 'content-type': 'application/json' }
        return (await fetch(path, { method: 'POST', headers, body: text })).json() as Promise<object>
      },
      [`/demo/wallets/${name}`, JSON.stringify(body)] as const,
    )
    expect(answer).toHaveProperty('result')
  }
  await close(page)
  const status = async () => (await screens.call<StoredRequest>(`/v1/request/${paymentReference}`)).status
  await expect.poll(status, { timeout: 30_000 }).not.toBe('OPEN')
}

function tryPayment(screens: () => Screens, findPayment: (filter: string) => Promise<string>): void {
  it.each([
    ['type=DIRECT', ['Timeline', 'Direct']],
    ['type=CONVERSION', ['Conversion', 'Exchange rates']],
    ['type=CROSSCHAIN', ['Paid on', 'Received on', 'Bridge']],
    ['type=RECURRING', ['Recurring']],
    ['status=PARTIAL', ['Outstanding on the request', 'Partially paid']],
    ['status=REFUNDED', ['Refunds', 'Returned', 'Fully refunded.']],
    ['status=FAILED', ['Failed. No money arrived.']],
  ])('shows a payment of %s', async (filter, texts) => {
    const id = await findPayment(filter)
    const page = await screens().open(`/console/payments/${id}`)
    await page.getByRole('heading', { name: 'Details' }).waitFor()
    for (const text of texts) await page.getByText(text).first().waitFor()
    // These three have every part of the page between them.
    if (/CROSSCHAIN|PARTIAL|REFUNDED/.test(filter)) await expectNoBarriers(page)
    await page.setViewportSize({ width: 320, height: 800 })
    expect(await isTooWide(page)).toBe(false)
    await close(page)
  })

  it('counts the confirmations of a pending payment while it is looked at', async () => {
    const { id } = await payPending(screens())
    const page = await screens().open(`/console/payments/${id}`)
    const count = async () => Number.parseInt(await page.locator('.confirmations').innerText(), 10)
    const before = await count()
    await expect.poll(count, { timeout: 20_000 }).toBeGreaterThan(before)
    await close(page)
  })

  it('says that a reorg may have removed a payment that is not there', async () => {
    const page = await screens().open(`/console/payments/${randomUUID()}`)
    await page.getByText('a reorg may have removed its block').waitFor()
    expect(await findBarriers(page)).toEqual([])
    await close(page)
  })
}
