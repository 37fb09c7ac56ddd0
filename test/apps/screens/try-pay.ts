/** The checkout page: payments of each kind with the wallets of the demo, each state in its words, wallets that fail. */
import type { Page } from 'playwright-core'
import { expect, it, vi } from 'vitest'
import { findBarriers, isTooWide, payPending, picture, type Screens } from './open-screens.ts'

interface Terms {
  readonly amount: string
  readonly invoiceCurrency: string
  readonly paymentCurrency: string
}

interface Stored {
  readonly paymentReference: string
  readonly status: string
}

const USDC: Terms = { amount: '3.25', invoiceCurrency: 'USDC-ETHEREUM', paymentCurrency: 'USDC-ETHEREUM' }
const ETHER: Terms = { amount: '0.002', invoiceCurrency: 'ETH-ETHEREUM', paymentCurrency: 'ETH-ETHEREUM' }
const DOLLARS: Terms = { amount: '4.5', invoiceCurrency: 'USD', paymentCurrency: 'USDC-ARBITRUM' }

export const linkOf = ({ facts }: Screens, reference: string, key = facts.publishableKey) =>
  `/pay/${reference}?key=${key}`

export async function createRequest(
  { facts, ...screens }: Screens,
  terms: Terms = USDC,
  more: object = {},
): Promise<string> {
  const payee = facts.wallets.shallowPool?.address
  return (await screens.call<Stored>('/v1/request', { payee, ...terms, ...more })).paymentReference
}

export const heading = (page: Page) => page.getByRole('heading', { level: 2 }).first()
export const connect = (page: Page, wallet: string) =>
  page.getByRole('button', { name: new RegExp(`^${wallet}`) }).click()

/** Answers the wallet's dialogs until the page shows another heading than "Paying". @returns how often the wallet asked */
export async function answerAll(page: Page, answer: 'Confirm' | 'Decline' = 'Confirm'): Promise<number> {
  const dialog = page.getByRole('dialog')
  for (let asked = 0; ; ) {
    // Not expect.poll, which belongs to one test: some run at once.
    await vi.waitUntil(
      async () => (await dialog.isVisible()) || !/^(Paying|Choose)/.test((await heading(page).textContent()) ?? ''),
      { timeout: 30_000 },
    )
    if (!(await dialog.isVisible())) return asked
    asked++
    await dialog.getByRole('button', { name: answer }).click()
    await dialog.waitFor({ state: 'hidden' })
  }
}

async function payBy(page: Page, wallet: string): Promise<number> {
  await connect(page, wallet)
  await page.locator('.pay-button:enabled').click()
  return answerAll(page)
}

/** A page that somebody has put away while their payment becomes final. */
interface PutAway {
  page?: Page
  reference?: string
}

/** @param between - more tests, which run while a payment becomes final */
export function tryPay(screens: () => Screens, between: () => void): void {
  const away: PutAway = {}
  payAndLeave(screens, away)
  payEachWay(screens)
  payNothing(screens)
  sayEachState(screens)
  between()
  comeBack(screens, away)
}

function payAndLeave(screens: () => Screens, away: PutAway): void {
  it('is paid directly, and put away before the payment is final', async () => {
    const reference = await createRequest(screens(), { ...USDC, amount: '24.5' })
    const page = await screens().open(linkOf(screens(), reference))
    await connect(page, 'direct')
    await page.locator('.pay-button:enabled').waitFor()
    expect(await findBarriers(page)).toEqual([])
    await picture(page, 'pay-routes')
    await page.locator('.pay-button').click()
    expect(await answerAll(page)).toBe(2)
    await page.getByText('not final yet').waitFor()
    await hide(page, true)
    Object.assign(away, { page, reference })
  })
}

function comeBack(screens: () => Screens, away: PutAway): void {
  it('8. shows within 2 s of coming back that the payment is final, although it was hidden and cut off', async () => {
    const { page, reference } = away
    if (page === undefined) throw new Error('the payment before failed')
    const read = async () => (await screens().call<Stored>(`/v1/request/${reference}`)).status
    await expect.poll(read, { timeout: 120_000, interval: 500 }).toBe('PAID')
    const backAt = performance.now()
    await hide(page, false)
    await page.getByRole('heading', { name: 'Payment complete' }).waitFor()
    expect(performance.now() - backAt).toBeLessThan(2_000)
    expect(await findBarriers(page)).toEqual([])
    await picture(page, 'pay-paid')
    await page.context().close()
  })
}

/** Payments that go through, each from an account of its own. */
function payEachWay(screens: () => Screens): void {
  it.concurrent.for([
    ['a swap', 'otherToken', USDC, 2],
    // coins need no approval, a token does
    ['the bridge', 'otherChain', USDC, undefined],
    ['coins', 'coinsOnly', ETHER, 1],
    ['a conversion of dollars', 'direct', DOLLARS, 2],
    ['a batch', 'batching', USDC, 1],
  ] as const)('is paid by %s, and counts', async ([, wallet, terms, confirmations], { expect, onTestFailed }) => {
    const reference = await createRequest(screens(), terms)
    const page = await screens().open(linkOf(screens(), reference), {}, undefined, onTestFailed)
    expect(await payBy(page, wallet)).toEqual(confirmations ?? expect.any(Number))
    await page
      .getByText(/not final yet|Payment complete/)
      .first()
      .waitFor({ timeout: 60_000 })
    await page.context().close()
  })
}

/** A payer who says no, and one who cannot pay. */
function payNothing(screens: () => Screens): void {
  it('takes a refusal for what it is, and asks again only when the payer does', async () => {
    const page = await screens().open(linkOf(screens(), await createRequest(screens(), USDC)))
    await connect(page, 'direct')
    await page.locator('.pay-button:enabled').click()
    expect(await answerAll(page, 'Decline')).toBe(1)
    await page.getByRole('heading', { name: 'Payment declined in your wallet' }).waitFor()
    await page.getByRole('button', { name: 'Back to the ways to pay' }).click()
    await page.locator('.pay-button:enabled').waitFor()
    await page.context().close()
  })

  it('says to a wallet that is too poor what it lacks', async () => {
    const page = await screens().open(linkOf(screens(), await createRequest(screens(), USDC)), {
      viewport: { width: 320, height: 800 },
      colorScheme: 'dark',
    })
    await connect(page, 'empty')
    await page.getByRole('heading', { name: 'This wallet cannot pay' }).waitFor()
    expect(await page.locator('.missing').innerText()).toMatch(
      /USDC · Ethereum\s+You need 3.25 USDC more on Ethereum\./,
    )
    expect(await isTooWide(page)).toBe(false)
    expect(await findBarriers(page)).toEqual([])
    await page.context().close()
  })
}

/** Requests and links that cannot be paid. */
function sayEachState(screens: () => Screens): void {
  it('says of each state what it is, what is left and what to do (9)', async () => {
    const { facts } = screens()
    const soon = new Date(Date.now() + 1_500).toISOString()
    const expired = await createRequest(screens(), USDC, { expiresAt: soon })
    const cancelled = await createRequest(screens(), USDC)
    await screens().call(`/v1/request/${cancelled}:cancel`, {})
    const seeded = (says: string) => facts.requests.find((each) => each.says.startsWith(says))?.paymentReference ?? ''
    const page = await screens().open('/healthz', { colorScheme: 'dark' })
    const wordsOf = async (reference: string) => {
      await page.goto(facts.baseUrl + linkOf(screens(), reference))
      await heading(page).waitFor()
      return (await page.getByRole('main').innerText()).replaceAll(/\s+/g, ' ')
    }
    expect(await wordsOf(seeded('Paid'))).toMatch(/250 DAI.*Payment complete The payment is final/)
    expect(await wordsOf(seeded('Overpaid'))).toMatch(
      /Payment complete The payment is final.*refund the overpayment: 30 USDC/,
    )
    expect(await wordsOf(seeded('Partially paid'))).toMatch(/180 USDC.*120 USDC \/ 300 USDC.*Choose a wallet/)
    const pending = await payPending(screens())
    expect(await wordsOf(pending.paymentReference)).toMatch(/not final yet.*Do not pay again/)
    expect(await wordsOf(cancelled)).toMatch(/cancelled.*Do not send anything/)
    await page.getByRole('heading', { name: 'The shop has cancelled this request' }).waitFor()
    await page.goto(facts.baseUrl + linkOf(screens(), expired))
    // It expires while somebody checks.
    await page.getByRole('heading', { name: 'This request has expired' }).waitFor()
    await page.getByText('Do not send anything').waitFor()
    expect(await findBarriers(page)).toEqual([])
    await page.context().close()
  })

  it('says what is wrong with a key that is missing, secret or not valid', async () => {
    const { facts } = screens()
    const asked: string[] = []
    const page = await screens().open('/healthz')
    page.on('request', (request) => asked.push(JSON.stringify(request.headers())))
    for (const [key, title] of [
      ['', 'This link is incomplete'],
      [`wb_${'a'.repeat(40)}`, 'Do not use this link'],
      [`wbp_${'a'.repeat(40)}`, 'This link is no longer valid'],
    ] as const) {
      await page.goto(facts.baseUrl + linkOf(screens(), facts.requests[0]?.paymentReference ?? '', key))
      await page.getByRole('heading', { name: title }).waitFor()
      expect(await findBarriers(page)).toEqual([])
    }
    expect(asked.join()).not.toContain('wb_')
    await page.context().close()
  })
}

/** As a browser does with a page that is put away: it says so, and its connections may be cut. */
async function hide(page: Page, isHidden: boolean): Promise<void> {
  await page.context().setOffline(isHidden)
  await page.evaluate(
    (state) => {
      Object.defineProperty(document, 'visibilityState', { value: state, configurable: true })
      document.dispatchEvent(new Event('visibilitychange'))
    },
    isHidden ? 'hidden' : 'visible',
  )
}
