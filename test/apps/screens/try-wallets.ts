/** The checkout page with wallets that are silent, fail, or still show a question when the page is loaded again or opened twice. */
import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { findBarriers, isTooWide, type Screens } from './open-screens.ts'
import { connect, createRequest, linkOf } from './try-pay.ts'

const NAME = 'Test wallet'
const payButton = (page: Page) => page.locator('.pay-button:enabled')
const askAgain = (page: Page) => page.getByRole('button', { name: 'My wallet shows no request' })

/** Coins need no approval: there is one question. */
const ETHER = { amount: '0.02', invoiceCurrency: 'ETH-ETHEREUM', paymentCurrency: 'ETH-ETHEREUM' }

export function tryWallets(screens: () => Screens): void {
  beSilent(screens)
  failBefore(screens)
  askTwice(screens)
  loadAgain(screens)
}

async function openWith(screens: Screens, wallet: Partial<WalletTerms>, terms: object = ETHER, options = {}) {
  const reference = await createRequest(screens, terms as typeof ETHER)
  const link = linkOf(screens, reference)
  const page = await screens.open(link, options, async (fresh) => {
    await fresh.clock.install()
    await announceIn(fresh, wallet)
  })
  const paid = async () => (await screens.call<{ pendingAmount: string }>(`/v1/request/${reference}`)).pendingAmount
  return { reference, link, page, paid }
}

const announceIn = (page: Page, wallet: Partial<WalletTerms>) =>
  page.addInitScript(announceWallet, { name: NAME, account: 'coinsOnly', fails: {}, holds: [], ...wallet })

/** Answers what a wallet holds back, as its person would. */
const answer = (page: Page, yes: boolean) => page.evaluate((isYes) => answerHeld(isYes), yes)
const questions = (page: Page) => page.evaluate(() => asked)

/** After this time the page says that a wallet is silent. */
const SILENT_MS = 15_000

/** Lets the page's clock run on: its timer begins a moment after the question is shown. */
async function untilSilent(page: Page): Promise<void> {
  const words = page.getByText('has not answered yet')
  await expect.poll(() => page.clock.fastForward(SILENT_MS).then(() => words.isVisible())).toBe(true)
}

/** Wallets that never answer. The clock of the page is the test's: nobody waits for them. */
function beSilent(screens: () => Screens): void {
  it('leaves the other wallets usable while one does not connect, and says what to do', async () => {
    const { page } = await openWith(screens(), { holds: ['eth_requestAccounts'] }, ETHER, PHONE)
    await connect(page, NAME)
    await page.getByText(`Confirm the connection in ${NAME}`).waitFor()
    await untilSilent(page)
    expect(await findBarriers(page)).toEqual([])
    expect(await isTooWide(page)).toBe(false)
    await picture(page, 'connect-silent')
    await connect(page, 'direct')
    await page.getByText('Paying with').waitFor()
    await page.context().close()
  })

  it('lets the payer stop waiting for an approval, and nothing was paid', async () => {
    const { page } = await openWith(screens(), { account: 'direct', holds: ['eth_sendTransaction'] }, USDC)
    await connect(page, NAME)
    await payButton(page).click()
    await expect.poll(() => questions(page)).toEqual(['eth_sendTransaction'])
    await untilSilent(page)
    await picture(page, 'approval-silent')
    await page.getByRole('button', { name: 'Stop waiting' }).click()
    await page.getByRole('heading', { name: 'Your wallet did not answer' }).waitFor()
    expect(await findBarriers(page)).toEqual([])
    await picture(page, 'approval-stopped')
    await page.getByRole('button', { name: 'Back to the ways to pay' }).click()
    await payButton(page).waitFor()
    await page.context().close()
  })

  it('says after the payment was asked for that it may have been sent, and pays again only when the payer says so', async () => {
    const { page, paid } = await openWith(screens(), { holds: ['eth_sendTransaction'] })
    await connect(page, NAME)
    await payButton(page).click()
    await expect.poll(() => questions(page)).toEqual(['eth_sendTransaction'])
    await untilSilent(page)
    await page.getByRole('button', { name: 'Stop waiting' }).click()
    await page.getByRole('heading', { name: 'Check your wallet' }).waitFor()
    await picture(page, 'payment-stopped')
    await page.getByRole('button', { name: 'My wallet sent nothing' }).click()
    await payButton(page).click()
    await expect.poll(() => questions(page)).toEqual(['eth_sendTransaction', 'eth_sendTransaction'])
    await answer(page, true)
    await page.getByText('not final yet').waitFor({ timeout: 40_000 })
    expect(await paid()).toBe('0.02')
    await page.context().close()
  })
}

const USDC = { amount: '3.25', invoiceCurrency: 'USDC-ETHEREUM', paymentCurrency: 'USDC-ETHEREUM' }
const PHONE = { viewport: { width: 390, height: 844 } }

/** Wallets that fail before the payment was asked for, and at it. */
function failBefore(screens: () => Screens): void {
  it.each([
    ['an approval', USDC, 'direct', { code: -32603, message: 'Internal JSON-RPC error.' }, 'Your wallet could not pay'],
    ['an approval, refused in words', USDC, 'direct', { message: 'User rejected' }, 'Payment declined in your wallet'],
    [
      'a payment',
      ETHER,
      'coinsOnly',
      { code: -32000, message: 'insufficient funds for gas' },
      'Your wallet could not pay',
    ],
    ['a payment, refused over WalletConnect', ETHER, 'coinsOnly', { code: 5000 }, 'Payment declined in your wallet'],
    ['a payment beside another question', ETHER, 'coinsOnly', { code: -32002 }, 'Your wallet already shows a request'],
  ] as const)(
    '%s that fails: a way back, and no word of “do not pay again”',
    async (_, terms, account, error, title) => {
      const { page } = await openWith(screens(), { account, fails: { eth_sendTransaction: error } }, terms)
      await connect(page, NAME)
      await payButton(page).click()
      await page.getByRole('heading', { name: title }).waitFor()
      const words = await page.getByRole('main').innerText()
      expect(words).toContain('Nothing was paid')
      expect(words).not.toMatch(/do not pay again/i)
      expect(await findBarriers(page)).toEqual([])
      await page.getByRole('button', { name: 'Back to the ways to pay' }).click()
      await payButton(page).waitFor()
      await page.context().close()
    },
  )
}

/** One question, two pages. */
function askTwice(screens: () => Screens): void {
  it('a second tab says that a question is open, and pays nothing beside it', async () => {
    const { page, link, paid } = await openWith(screens(), { holds: ['eth_sendTransaction'] })
    const tab = await page.context().newPage()
    await announceIn(tab, {})
    await tab.goto(screens().facts.baseUrl + link)
    await connect(tab, NAME)
    await payButton(tab).waitFor()
    await connect(page, NAME)
    await payButton(page).click()
    await expect.poll(() => questions(page)).toEqual(['eth_sendTransaction'])
    await tab.getByRole('heading', { name: 'Your wallet was already asked to pay' }).waitFor()
    expect(await payButton(tab).count()).toBe(0)
    expect(await findBarriers(tab)).toEqual([])
    await picture(tab, 'asked-before')
    // What the payer refuses in the first tab is open to the second.
    await answer(page, false)
    await page.getByRole('heading', { name: 'Payment declined in your wallet' }).waitFor()
    await payButton(tab).click()
    await tab.getByText('not final yet').waitFor({ timeout: 40_000 })
    expect([await paid(), await questions(page)]).toEqual(['0.02', ['eth_sendTransaction']])
    await page.context().close()
  })

  it('a second tab that pays while the first does asks for nothing, until the payer says so', async () => {
    const { page, link, paid } = await openWith(screens(), { account: 'direct', holds: ['eth_sendTransaction'] }, USDC)
    const tab = await page.context().newPage()
    await announceIn(tab, { account: 'direct' })
    await tab.goto(screens().facts.baseUrl + link)
    await connect(page, NAME)
    await payButton(page).click()
    // An approval leaves no mark: the lock alone says it.
    await expect.poll(() => questions(page)).toEqual(['eth_sendTransaction'])
    await connect(tab, NAME)
    await payButton(tab).click()
    await tab.getByText('Another tab of this browser is paying').waitFor()
    expect(await questions(tab)).toEqual([])
    await picture(tab, 'other-tab')
    await askAgain(tab).click()
    await payButton(tab).click()
    await tab.getByText('not final yet').waitFor({ timeout: 40_000 })
    await answer(page, true)
    await expect.poll(paid).toBe('3.25')
    expect((await questions(page)).length).toBe(1)
    await page.context().close()
  })
}

/** One question, one page, and no storage. */
function loadAgain(screens: () => Screens): void {
  it('after a reload while the question stands open, the page asks for nothing until the payer says so', async () => {
    const { page, paid } = await openWith(screens(), { holds: ['eth_sendTransaction'] }, ETHER, PHONE)
    await connect(page, NAME)
    await payButton(page).click()
    await expect.poll(() => questions(page)).toEqual(['eth_sendTransaction'])
    await page.reload()
    await page.getByRole('heading', { name: 'Your wallet was already asked to pay' }).waitFor()
    expect(await findBarriers(page)).toEqual([])
    expect(await isTooWide(page)).toBe(false)
    await picture(page, 'asked-before-reload')
    expect(await page.getByRole('button', { name: NAME }).count()).toBe(0)
    await askAgain(page).click()
    await connect(page, NAME)
    await payButton(page).click()
    await expect.poll(() => questions(page)).toEqual(['eth_sendTransaction'])
    await answer(page, true)
    await page.getByText('not final yet').waitFor({ timeout: 40_000 })
    expect(await paid()).toBe('0.02')
    await page.context().close()
  })

  it('a page whose browser denies its storage pays all the same', async () => {
    const { reference } = await openWith(screens(), {})
    const page = await screens().open(linkOf(screens(), reference), {}, async (fresh) => {
      await announceIn(fresh, {})
      await fresh.addInitScript(() => {
        const deny = () => {
          throw new DOMException('denied', 'SecurityError')
        }
        Object.defineProperty(globalThis, 'localStorage', { get: deny })
        Object.defineProperty(navigator, 'locks', { value: { request: () => Promise.reject(new Error('denied')) } })
      })
    })
    await connect(page, NAME)
    await payButton(page).click()
    await page.getByText('not final yet').waitFor({ timeout: 40_000 })
    expect(await questions(page)).toEqual([])
    await page.context().close()
  })
}

/** `PICTURES_FOLDER=folder` leaves pictures of the states, for somebody to look at. */
async function picture(page: Page, name: string): Promise<void> {
  const folder = process.env.PICTURES_FOLDER
  if (folder === undefined) return
  const before = page.viewportSize()
  for (const width of [390, 1440]) {
    await page.setViewportSize({ width, height: 900 })
    await page.screenshot({ path: `${folder}/${name}-${width}.png` })
  }
  if (before !== null) await page.setViewportSize(before)
}

interface WalletTerms {
  readonly name: string
  /** The wallet of the demo that pays. */
  readonly account: string
  /** What it throws, by method. */
  readonly fails: Readonly<Record<string, { readonly code?: number; readonly message?: string }>>
  /** Methods that its person answers: see `answerHeld`. */
  readonly holds: readonly string[]
}

/** In the page: the methods that the wallet was asked for of those that it holds back or fails at. */
declare const asked: readonly string[]
/** In the page: answers what the wallet holds back. */
declare function answerHeld(isYes: boolean): void

/** In the page: a wallet that pays with an account of the demo, and misbehaves. */
function announceWallet({ name, account, fails, holds }: WalletTerms): void {
  const calls: string[] = []
  const held: ((isYes: boolean) => void)[] = []
  let chainId: string | undefined
  const post = async (method: string, params: readonly unknown[]) => {
    const body = JSON.stringify({ method, params, ...(chainId !== undefined && { chainId }) })
    const headers = { 'content-type': 'application/json' }
    const reply = await fetch(`/demo/wallets/${account}`, { method: 'POST', headers, body })
    const { result, error } = (await reply.json()) as { result?: unknown; error?: object }
    if (error !== undefined) throw Object.assign(new Error('the demo refused'), error)
    if (method === 'wallet_switchEthereumChain') chainId = (params[0] as { chainId: string }).chainId
    return result
  }
  const provider = {
    async request({ method, params = [] }: { method: string; params?: readonly unknown[] }) {
      const failure = fails[method]
      if (failure !== undefined || holds.includes(method)) calls.push(method)
      if (failure !== undefined) throw Object.assign(new Error(failure.message ?? ''), failure)
      if (holds.includes(method)) {
        const isYes = await new Promise<boolean>((resolve) => held.push(resolve))
        if (!isYes) throw Object.assign(new Error('refused'), { code: 4001 })
      }
      return post(method, params)
    },
  }
  const info = { uuid: 'test-wallet', name, icon: '', rdns: 'test.wallet' }
  const announce = () =>
    dispatchEvent(new CustomEvent('eip6963:announceProvider', { detail: Object.freeze({ info, provider }) }))
  addEventListener('eip6963:requestProvider', announce)
  Object.assign(globalThis, {
    asked: calls,
    // the last question alone: a person answers what is on top
    answerHeld: (isYes: boolean) => held.pop()?.(isYes),
  })
}
