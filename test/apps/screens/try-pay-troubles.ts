/** What happens to the checkout page while a payment is made: reloads, a service that is away, other payers, other prices. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import { create, toBinary } from '@bufbuild/protobuf'
import type { Page, Route } from 'playwright-core'
import { expect, it } from 'vitest'
import { RetryInfoSchema } from '../../../gen/google/rpc/error_details_pb.js'
import { PaymentRequestSchema, PaymentRequest_Status as Status } from '../../../gen/payments/v1/payment_request_pb.js'
import { findBarriers, isTooWide, type Screens } from './open-screens.ts'
import { answerAll, connect, createRequest, heading, linkOf } from './try-pay.ts'

const payButton = (page: Page) => page.locator('.pay-button:enabled')

export function tryPayTroubles(screens: () => Screens): void {
  disturbPage(screens)
  refusePage(screens)
  disturbRequest(screens)
  payAcrossSlowly(screens)
  frame(screens)
  payByKeyboard(screens)
}

/** A page that is loaded again, or cannot read. */
function disturbPage(screens: () => Screens): void {
  it('waits for a payment of before a reload, and asks the wallet for nothing', async () => {
    const reference = await createRequest(screens())
    const page = await screens().open(linkOf(screens(), reference))
    const wallet = screens().facts.wallets.direct?.address.toLowerCase() ?? ''
    const name = `waybill:pay:${reference.slice(2)}:${wallet}`
    const sent = JSON.stringify({ transactionHash: `0x${'ab'.repeat(32)}`, chainId: '0x1de2a29' })
    await page.evaluate(([key = '', value = '']) => localStorage.setItem(key, value), [name, sent])
    await page.reload()
    await page.getByText('Waiting for the payment you already sent').waitFor()
    await page.getByText('0xabab…abab').waitFor()
    expect(await page.getByRole('button', { name: /^Pay/ }).count()).toBe(0)
    expect(await findBarriers(page)).toEqual([])
    await page.context().close()
  })

  it('says that the service is away until it is back, though nothing has changed', async () => {
    const page = await screens().open(linkOf(screens(), await createRequest(screens())))
    await heading(page).waitFor()
    await page.route('**/payments.v1.*/**', (route) => route.abort())
    await page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')))
    await page.getByText('not responding').waitFor()
    expect(await findBarriers(page)).toEqual([])
    await page.unroute('**/payments.v1.*/**')
    await page.getByText('not responding').waitFor({ state: 'hidden', timeout: 20_000 })
    await page.context().close()
  })
}

/** A service that takes no more calls for a while. */
function refusePage(screens: () => Screens): void {
  it('looks for ways again when the service said, after it took no more calls', async () => {
    const page = await screens().open(linkOf(screens(), await createRequest(screens())))
    await page.route('**/StreamPaymentRoutes', refuseStream, { times: 1 })
    await connect(page, 'direct')
    await page.getByText('continues within a minute').waitFor()
    expect(await findBarriers(page)).toEqual([])
    await payButton(page).waitFor()
    expect(await page.getByText('continues within a minute').count()).toBe(0)
    await page.context().close()
  })
}

/** What changes while the payer watches. */
function disturbRequest(screens: () => Screens): void {
  it('shows a price that has changed, and pays it when the payer says so', async () => {
    const page = await screens().open(linkOf(screens(), await createRequest(screens())))
    await page.route('**/GetPaymentCalldata', lowerLimit, { times: 1 })
    await connect(page, 'otherToken')
    await payButton(page).click()
    await page.getByRole('heading', { name: 'The price has changed' }).waitFor()
    expect(await page.getByRole('dialog').count()).toBe(0)
    expect(await findBarriers(page)).toEqual([])
    await payButton(page).click()
    expect(await answerAll(page)).toBe(2)
    await page.context().close()
  })

  it('asks for nothing more once somebody else has paid', async () => {
    const reference = await createRequest(screens())
    const [page, other] = await Promise.all([1, 2].map(() => screens().open(linkOf(screens(), reference))))
    if (page === undefined || other === undefined) throw new Error('two pages are needed')
    for (const [each, wallet] of [
      [page, 'direct'],
      [other, 'otherToken'],
    ] as const) {
      await connect(each, wallet)
      await payButton(each).waitFor()
    }
    await payButton(page).click()
    await page.getByRole('dialog').waitFor()
    await payButton(other).click()
    await answerAll(other)
    await page.getByText('not final yet').waitFor({ timeout: 40_000 })
    expect(await page.getByRole('dialog').count()).toBe(0)
    await page.context().close()
    await other.context().close()
  })

  it('pays no old amount once somebody else has paid a part', async () => {
    const reference = await createRequest(screens())
    const page = await screens().open(linkOf(screens(), reference))
    await connect(page, 'direct')
    await payButton(page).click()
    await page.getByRole('dialog').waitFor()
    await payPart(screens(), reference, '1.25')
    await page.getByRole('heading', { name: 'The amount due has changed' }).waitFor()
    await page.getByText('If your wallet still asks you to confirm, decline').waitFor()
    expect(await page.getByRole('dialog').count()).toBe(0)
    expect(await findBarriers(page)).toEqual([])
    await page.getByRole('button', { name: 'Back to the ways to pay' }).click()
    await page.getByRole('button', { name: 'Pay 2 USDC' }).waitFor()
    await page.context().close()
  })

  it('adds up what is final and what is not', async () => {
    const reference = await createRequest(screens())
    const sums = { paidAmount: '2', pendingAmount: '0.3', outstandingAmount: '0.95' }
    const page = await screens().open(linkOf(screens(), reference), {}, async (fresh) => {
      await fresh.route('**/WatchPaymentRequest', refuseStream)
      await fresh.route('**/GetPaymentRequest', (route) => answerRequest(route, reference, Status.PARTIALLY_PAID, sums))
    })
    await heading(page).waitFor()
    expect(await page.locator('.request').innerText()).toContain('2.3 USDC / 3.25 USDC paid so far')
    await page.context().close()
  })

  it('asks for no second payment when a reorg takes the first back', { timeout: 60_000 }, async () => {
    const reference = await createRequest(screens())
    let status = Status.OPEN
    const page = await screens().open(linkOf(screens(), reference), {}, async (fresh) => {
      await fresh.route('**/WatchPaymentRequest', refuseStream)
      await fresh.route('**/GetPaymentRequest', (route) => answerRequest(route, reference, status))
    })
    await connect(page, 'direct')
    await payButton(page).click()
    await answerAll(page)
    for (const [next, title] of [
      [Status.PENDING, 'not final yet'],
      [Status.OPEN, 'Your payment is on the chain'],
    ] as const) {
      status = next
      await page.getByRole('heading', { name: title }).waitFor({ timeout: 20_000 })
    }
    expect(await page.getByRole('dialog').count()).toBe(0)
    await page.context().close()
  })
}

const payPart = ({ call }: Screens, paymentReference: string, amount: string) =>
  call('/v1/demo/pay', { paymentReference, wallet: 'batching', amount, route: 'REQUEST_NETWORK_PAYMENT' })

/** A payment that left the wallet, while the bridge has not delivered. */
function payAcrossSlowly(screens: () => Screens): void {
  it('asks for no second payment while a bridge has not delivered, unless the payer says that it came back', async () => {
    const reference = await createRequest(screens())
    const link = linkOf(screens(), reference)
    const page = await screens().open(link, { viewport: { width: 390, height: 844 } }, (fresh) => fresh.clock.install())
    const again = page.getByRole('button', { name: 'My tokens came back' })
    const payAcross = async () => {
      await screens().call('/v1/demo/fail-bridge', { outcome: 'UNPAID' })
      await connect(page, 'otherChain')
      await payButton(page).click()
      expect(await answerAll(page)).toBeGreaterThan(0)
      await page.getByText('The bridge delivers in about').waitFor()
    }
    await payAcross()
    await payPart(screens(), reference, '1.25')
    await page.getByText('1.25 USDC / 3.25 USDC paid so far').waitFor()
    expect(await page.getByRole('button', { name: 'Pay the rest' }).count()).toBe(0)
    await page.clock.fastForward(61_000)
    await again.waitFor()
    await page.reload()
    const tab = await page.context().newPage()
    await tab.goto(screens().facts.baseUrl + link)
    for (const each of [page, tab]) {
      await each.getByRole('heading', { name: 'Your payment is on its way' }).waitFor()
      expect(await payButton(each).count()).toBe(0)
    }
    expect([await findBarriers(page), await isTooWide(page)]).toEqual([[], false])
    await again.click()
    // The tabs know it of each other.
    await tab.getByRole('heading', { name: 'Choose a wallet' }).waitFor()
    await payAcross()
    // It finds the wallet and follows the payment where that is not mined yet.
    await tab.getByRole('heading', { name: /^Your payment is on (its way|the chain)/ }).waitFor()
    await screens().call(`/v1/request/${reference}:cancel`, {})
    await page.getByText('Do not pay a new request before the shop says so').waitFor()
    await page.context().close()
  })

  it('offers the rest once a payment counts that brought a little less, also after a reload', async () => {
    const reference = await createRequest(screens())
    let sums = {}
    const page = await screens().open(linkOf(screens(), reference), {}, async (fresh) => {
      await fresh.route('**/WatchPaymentRequest', refuseStream)
      await fresh.route('**/GetPaymentRequest', (route) => answerRequest(route, reference, Status.PARTIALLY_PAID, sums))
    })
    await connect(page, 'direct')
    await payButton(page).click()
    await answerAll(page)
    await page.getByRole('heading', { name: 'Your payment is on the chain' }).waitFor()
    const rest = page.getByRole('button', { name: 'Pay the rest' })
    expect(await rest.count()).toBe(0)
    sums = { outstandingAmount: '0.05' }
    await rest.waitFor({ timeout: 20_000 })
    await page.reload()
    await connect(page, 'direct')
    await rest.click()
    // The ways to pay; the service itself knows of no rest.
    await page.getByText('Paying with').waitFor()
    await page.context().close()
  })
}

/** A port of development servers, for whose pages the demo's key is. */
const SHOP_PORT = 4173

/** The page in a shop's page. */
function frame(screens: () => Screens): void {
  it('tells the page that frames it of each state', async () => {
    const { facts, ...rest } = screens()
    const reference = await createRequest(screens())
    const page = await rest.open('/healthz')
    const html = `<script>reported = []; addEventListener('message', ({ origin, data }) => reported.push({ origin, ...data }))</script>
      <iframe src="${facts.baseUrl}${linkOf(screens(), reference)}" title="Pay" width="480" height="640"></iframe>`
    // A real server: a browser lets no page that it takes for a public one frame a page of this machine.
    const shop = createServer((_, response) => response.setHeader('content-type', 'text/html').end(html))
    await once(shop.listen(SHOP_PORT, '127.0.0.1'), 'listening')
    await page.goto(`http://127.0.0.1:${SHOP_PORT}/`)
    const sent = () => page.evaluate(() => (globalThis as unknown as { reported: readonly Said[] }).reported)
    const reported = async () => (await sent()).filter(({ type }) => type === 'waybill:status')
    const heights = async () => (await sent()).flatMap(({ height }) => height ?? [])
    const message = { origin: facts.baseUrl, type: 'waybill:status', paymentReference: reference }
    await expect.poll(reported).toEqual([{ ...message, status: 'OPEN' }])
    await rest.call(`/v1/request/${reference}:cancel`, {})
    await expect.poll(reported).toEqual([
      { ...message, status: 'OPEN' },
      { ...message, status: 'CANCELLED' },
    ])
    const inFrame = page.frameLocator('iframe').locator('#root')
    await expect.poll(async () => (await heights()).at(-1)).toBe(Math.ceil((await inFrame.boundingBox())?.height ?? 0))
    await page.context().close()
    shop.closeAllConnections()
    shop.close()
  })
}

/** A message of the page in the frame. */
interface Said {
  readonly type: string
  readonly height?: number
}

function payByKeyboard(screens: () => Screens): void {
  it('is used by the keyboard alone', async () => {
    const page = await screens().open(linkOf(screens(), await createRequest(screens())))
    await page.getByRole('button', { name: /^direct/ }).focus()
    await page.keyboard.press('Enter')
    await payButton(page).waitFor()
    const focused = () => page.evaluate(() => document.activeElement?.textContent)
    await expect.poll(focused).toBe('Choose how to pay')
    for (let tabs = 0; !(await focused())?.startsWith('Pay ') && tabs < 15; tabs++) await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    await page.getByRole('dialog').waitFor()
    // What does no harm has the focus.
    await expect.poll(focused).toBe('Decline')
    await page.keyboard.press('Escape')
    await page.getByRole('heading', { name: 'Payment declined in your wallet' }).waitFor()
    await expect.poll(focused).toBe('Payment declined in your wallet')
    await page.context().close()
  })
}

/** Lets less leave the wallet than the route takes: the amount is in the call as text. */
function lowerLimit(route: Route): Promise<void> {
  const call = route.request().postDataBuffer()?.toString('latin1') ?? ''
  return route.continue({ postData: Buffer.from(call.replace(/3\.2(?=\d{8})/, '3.1'), 'latin1') })
}

function refuseStream(route: Route): Promise<void> {
  const value = Buffer.from(toBinary(RetryInfoSchema, create(RetryInfoSchema, { retryDelay: { seconds: 2n } })))
  const details = [{ type: 'google.rpc.RetryInfo', value: value.toString('base64') }]
  const end = Buffer.from(JSON.stringify({ error: { code: 'resource_exhausted', message: 'too many calls', details } }))
  const head = Buffer.from([2, 0, 0, 0, end.length])
  return route.fulfill({ contentType: 'application/connect+proto', body: Buffer.concat([head, end]) })
}

function answerRequest(route: Route, paymentReference: string, status: Status, sums = {}): Promise<void> {
  const currency = 'USDC-ETHEREUM'
  const request = create(PaymentRequestSchema, {
    paymentReference,
    payee: '0x532E8b9976FC15D7C002647ac6E3341160FdfA04',
    amount: '3.25',
    invoiceCurrency: currency,
    paymentCurrency: currency,
    network: 'ETHEREUM',
    status,
    paidAmount: '0',
    pendingAmount: '0',
    outstandingAmount: '3.25',
    overpaidAmount: '0',
    ...sums,
  })
  return route.fulfill({
    contentType: 'application/proto',
    body: Buffer.from(toBinary(PaymentRequestSchema, request)),
  })
}
