/** The checkout page opened twice, and without a storage. One page with each wallet: payer-table.ts. */
import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { type Act, announceWallet, answerWallet, type BrowserWallet, questionsOf } from '../../support/page-wallets.ts'
import { findBarriers, type Screens } from './open-screens.ts'
import { connect, createRequest, linkOf } from './try-pay.ts'

const NAME = 'Test wallet'
const HELD = { eth_sendTransaction: 'HOLDS' } as const satisfies Record<string, Act>
const payButton = (page: Page) => page.locator('.pay-button:enabled')
const askAgain = (page: Page) => page.getByRole('button', { name: 'My wallet shows no request' })

/** Coins need no approval: there is one question. */
const ETHER = { amount: '0.02', invoiceCurrency: 'ETH-ETHEREUM', paymentCurrency: 'ETH-ETHEREUM' }

export function tryWallets(screens: () => Screens): void {
  askTwice(screens)
  denyStorage(screens)
}

async function openWith(screens: Screens, wallet: Partial<BrowserWallet>, terms: object = ETHER, options = {}) {
  const reference = await createRequest(screens, terms as typeof ETHER)
  const link = linkOf(screens, reference)
  const page = await screens.open(link, options, async (fresh) => {
    await fresh.clock.install()
    await announceWallet(fresh, wallet)
  })
  const paid = async () => (await screens.call<{ pendingAmount: string }>(`/v1/request/${reference}`)).pendingAmount
  return { reference, link, page, paid }
}

const USDC = { amount: '3.25', invoiceCurrency: 'USDC-ETHEREUM', paymentCurrency: 'USDC-ETHEREUM' }

/** One question, two pages. */
function askTwice(screens: () => Screens): void {
  it('a second tab says that a question is open, and pays nothing beside it', async () => {
    const { page, link, paid } = await openWith(screens(), { acts: HELD })
    const tab = await page.context().newPage()
    await announceWallet(tab, {})
    await tab.goto(screens().facts.baseUrl + link)
    await connect(tab, NAME)
    await payButton(tab).waitFor()
    await connect(page, NAME)
    await payButton(page).click()
    await expect.poll(() => questionsOf(page)).toEqual(['eth_sendTransaction'])
    await tab.getByRole('heading', { name: 'Your wallet was already asked to pay' }).waitFor()
    expect(await payButton(tab).count()).toBe(0)
    expect(await findBarriers(tab)).toEqual([])
    // What the payer refuses in the first tab is open to the second.
    await answerWallet(page, false)
    await page.getByRole('heading', { name: 'Payment declined in your wallet' }).waitFor()
    await payButton(tab).click()
    await tab.getByText('not final yet').waitFor({ timeout: 40_000 })
    expect([await paid(), await questionsOf(page)]).toEqual(['0.02', ['eth_sendTransaction']])
    await page.context().close()
  })

  it('a second tab that pays while the first does asks for nothing, until the payer says so', async () => {
    const { page, link, paid } = await openWith(screens(), { account: 'direct', acts: HELD }, USDC)
    const tab = await page.context().newPage()
    await announceWallet(tab, { account: 'direct' })
    await tab.goto(screens().facts.baseUrl + link)
    await connect(page, NAME)
    await payButton(page).click()
    // An approval leaves no mark: the lock alone says it.
    await expect.poll(() => questionsOf(page)).toEqual(['eth_sendTransaction'])
    await connect(tab, NAME)
    await payButton(tab).click()
    await tab.getByText('Another tab of this browser is paying').waitFor()
    expect(await questionsOf(tab)).toEqual([])
    await askAgain(tab).click()
    await payButton(tab).click()
    await tab.getByText('not final yet').waitFor({ timeout: 40_000 })
    await answerWallet(page, true)
    await expect.poll(paid).toBe('3.25')
    expect((await questionsOf(page)).length).toBe(1)
    await page.context().close()
  })
}

function denyStorage(screens: () => Screens): void {
  it('a page whose browser denies its storage pays all the same', async () => {
    const { reference } = await openWith(screens(), {})
    const page = await screens().open(linkOf(screens(), reference), {}, async (fresh) => {
      await announceWallet(fresh, {})
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
    expect(await questionsOf(page)).toEqual(['eth_sendTransaction'])
    await page.context().close()
  })
}
