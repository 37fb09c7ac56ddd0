/**
 * A payer before the checkout page, with each wallet, each state of the request, and what happens meanwhile. It must hold: what the payer was not
 * asked for again is paid once at most; every page has a heading and something that can be pressed; a wallet's own words stand behind words
 * of the page; after a reload the page says the same.
 */
import { randomBytes } from 'node:crypto'
import type { Locator, Page } from 'playwright-core'
import { type ExpectStatic, it, type TestContext } from 'vitest'
import { createWaybill, pay } from '../../../clients/typescript/src/public.ts'
import { encodeBalanceOf } from '../../../demo/network/demo-contracts.ts'
import { createRpc } from '../../../demo/network/rpc.ts'
import { announceWallet, answerWallet, changeAccount, demoWallet, questionsOf } from '../../support/page-wallets.ts'
import { findBarriers, isTooWide, type Screens } from './open-screens.ts'
import {
  actsDuring,
  CLOSING,
  type Combination,
  isAsked,
  isSent,
  saysAfterReload,
  WALLET_SAYS,
  type WalletRow,
} from './payer-table.ts'
import { connect, linkOf } from './try-pay.ts'

const NAME = 'Test wallet'
const SETTLED = /not final yet|Payment complete|has cancelled this request|has expired|payment was returned/
/** What no page says: codes and names of programs. */
const RAW = /\[object|undefined|\bnull\b|NaN|-32\d{3}|(?:^|[ :(])(?:4001|4[129]0\d|5[07]\d\d)\b|Error\b|\{"/

interface Scene extends Combination {
  readonly screens: Screens
  readonly page: Page
  readonly reference: string
  /** What is due, and what the payee has, in base units. */
  readonly due: bigint
  readonly paid: () => Promise<bigint>
  /** What the page asked the payer to decline. */
  isWarned: boolean
  /** Whether the payer takes another wallet, and has done so. */
  isOther: boolean
  hasOther: boolean
  readonly expect: ExpectStatic
}

const COINS = { amount: '0.02', invoiceCurrency: 'ETH-ETHEREUM', paymentCurrency: 'ETH-ETHEREUM' }
const PART = { COINS: '0.005', TOKEN: '0.1' } as const
/** Enough to come to the wallet's question; a part is paid and found before. */
const EXPIRES_IN_MS = { OPEN: 25_000, PARTIALLY_PAID: 50_000 } as const

let tokens = 0
/** Each more than the one before, also where a part is paid: what is left of an approval never suffices. */
const nextToken = () => ({
  amount: (10 + 0.2 * ++tokens).toFixed(1),
  invoiceCurrency: 'USDC-ETHEREUM',
  paymentCurrency: 'USDC-ETHEREUM',
})

let lastOfToken: Promise<unknown> = Promise.resolve()
/** An account approves one amount of a token at a time. */
function oneAtATime<T>(row: WalletRow, work: () => Promise<T>): Promise<T> {
  if (row.due !== 'TOKEN') return work()
  const own = lastOfToken.then(work, work)
  lastOfToken = own.catch(() => undefined)
  return own
}

/** @param screens - read when a test runs */
export function tryPayerTable(screens: () => Screens, combinations: readonly Combination[]): void {
  it.concurrent.for(combinations)('a wallet that $row.does, $state, $event', async (combination, context) => {
    const { expect } = context
    const { paid, most } = await tryCombination(screens(), combination, context)
    expect(paid).toBeLessThanOrEqual(most)
  })
}

/** Plays one combination to its end. @returns what the payee has, and the most that the payer agreed to */
function tryCombination(screens: Screens, combination: Combination, context: TestContext) {
  return oneAtATime(combination.row, async () => {
    const scene = await arrange(screens, combination, context)
    await come(scene)
    const { row, due, isWarned } = scene
    const paid = row.due === 'TO_PAYER' ? 0n : await scene.paid()
    await scene.page.context().close()
    // Who confirms although the page asked to decline pays once more.
    return { paid, most: isWarned && row.sends === true ? 2n * due : due }
  })
}

async function arrange(
  screens: Screens,
  combination: Combination,
  { expect, onTestFailed }: TestContext,
): Promise<Scene> {
  const { row, state, event } = combination
  const { facts } = screens
  const isToken = row.due === 'TOKEN'
  const terms = isToken ? nextToken() : COINS
  const payee = row.due === 'TO_PAYER' ? facts.wallets.coinsOnly?.address : `0x${randomBytes(20).toString('hex')}`
  const more = event === 'EXPIRED' ? { expiresAt: new Date(Date.now() + EXPIRES_IN_MS[state]).toISOString() } : {}
  const { paymentReference: reference } = await screens.call<{ paymentReference: string }>('/v1/request', {
    payee,
    ...terms,
    ...more,
  })
  if (state === 'PARTIALLY_PAID' && row.due !== 'TO_PAYER') {
    await payElsewhere(screens, reference, PART[isToken ? 'TOKEN' : 'COINS'])
    // A page that is opened before the part is found asks for the whole.
    const isFound = async () => (await screens.call<{ status: string }>(`/v1/request/${reference}`)).status === state
    await expect.poll(isFound, { timeout: 30_000 }).toBe(true)
  }
  const wallet = { ...row.wallet, name: NAME, acts: actsDuring(row, event) }
  const page = await screens.open(
    linkOf(screens, reference),
    { viewport: { width: 390, height: 844 } },
    async (fresh) => {
      await fresh.clock.install()
      await announceWallet(fresh, wallet)
    },
    onTestFailed,
  )
  const chain = facts.chains.find(({ name }) => name === 'ETHEREUM')
  const token = chain?.tokens.find(({ symbol }) => symbol === 'USDC')
  const rpc = createRpc(chain?.rpcUrl ?? '')
  const paid = async () => {
    if (!isToken) return BigInt(await rpc.call<string>('eth_getBalance', [payee, 'latest']))
    const { data } = encodeBalanceOf(token?.address as `0x${string}`, payee as `0x${string}`)
    return BigInt(await rpc.call<string>('eth_call', [{ to: token?.address, data }, 'latest']))
  }
  const decimals = isToken ? 1e6 : 1e18
  return {
    ...combination,
    screens,
    page,
    reference,
    due: BigInt(Math.round(Number(terms.amount) * decimals)),
    paid,
    isWarned: false,
    isOther: row.next === 'OTHER_WALLET',
    hasOther: false,
    expect,
  }
}

/** Somebody else pays, or the same person from another browser. */
async function payElsewhere({ facts }: Screens, paymentReference: string, amount?: string): Promise<void> {
  const waybill = createWaybill({ baseUrl: facts.baseUrl, apiKey: 'demo' })
  const wallet = facts.wallets.direct?.address ?? ''
  const provider = demoWallet(facts.baseUrl, 'direct')
  const { outcome } = await pay({ waybill, paymentReference, wallet, provider, amount, pollMs: 100 })
  if (outcome !== 'MINED') throw new Error(`the other payment ended with ${outcome}`)
}

/** Connects and pays, as far as the wallet lets the payer come, and from there to the end. */
async function come(scene: Scene): Promise<void> {
  const { page, row, event } = scene
  await connect(page, NAME)
  if (row.at === 'PAY') {
    await payButton(page).click()
    if (isAsked(row)) await happen(scene)
  }
  const isClosed = CLOSING[event] !== undefined && isAsked(row)
  if (!isClosed && event !== 'RELOAD') await untilSaid(scene)
  if (event === 'RELOAD_LATER') await page.reload()
  await endWell(scene)
}

const payButton = (page: Page) => page.locator('.pay-button:enabled')
const main = (page: Page) => page.getByRole('main')

/** While the wallet's question is open. The person then answers yes: also one who was asked to decline. */
async function happen(scene: Scene): Promise<void> {
  const { event, page, screens, reference, expect } = scene
  if (event === 'NOTHING' || event === 'RELOAD_LATER' || event === 'NODE_AWAY') return
  await expect.poll(() => questionsOf(page)).toHaveLength(1)
  const services = '**/payments.v1.*/**'
  if (event === 'OTHER_ACCOUNT') await changeAccount(page, 'empty')
  if (event === 'PAID_ELSEWHERE') await payElsewhere(screens, reference)
  if (event === 'CANCELLED') await screens.call(`/v1/request/${reference}:cancel`, {})
  if (event === 'RELOAD') await page.reload()
  if (event === 'SERVICE_AWAY') {
    await page.route(services, (route) => route.abort())
    await page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')))
    await page.getByText('not responding').waitFor()
  }
  const closing = CLOSING[event]
  if (closing !== undefined) {
    await page.getByRole('heading', { name: closing }).waitFor({ timeout: 60_000 })
    expect(await main(page).innerText()).toMatch(/If your wallet still asks you to confirm, decline\./)
    scene.isWarned = true
  }
  if (event === 'RELOAD') {
    await page.getByRole('heading', { name: saysAfterReload(scene.row) }).waitFor()
    await judge(scene)
    expect(await payButton(page).count()).toBe(0)
  }
  await answerWallet(page, event !== 'RELOAD' || isSent(scene.row, event))
  if (event === 'SERVICE_AWAY') await page.unroute(services)
}

/** At a time: a read of the wallet's node may take 10 s. */
const WAITS = { SILENT: 15_000, LOST: 8_000 } as const

/** Lets time go by on a page that waits for its wallet. */
async function wait({ page, row }: Scene): Promise<void> {
  if (row.waits === undefined) return
  const isWaiting =
    row.at === 'CONNECT' ||
    (await questionsOf(page)).length > 0 ||
    (await page.getByText('Waiting for the payment you already sent').isVisible())
  if (isWaiting) await page.clock.fastForward(WAITS[row.waits])
}

/** Until the page says what the wallet did. */
async function untilSaid(scene: Scene): Promise<void> {
  const { page, row, event, expect } = scene
  const stop = page.getByRole('button', { name: 'Stop waiting' })
  const isSaid = async () => {
    await wait(scene)
    if (await stop.isVisible()) await stop.click()
    return row.says.test(await main(page).innerText())
  }
  await expect.poll(isSaid, { timeout: 60_000, interval: 300 }).toBe(true)
  if (event === 'SERVICE_AWAY') await page.getByText('not responding').waitFor({ state: 'hidden', timeout: 20_000 })
  await judge(scene)
}

/** Headings of the pages that were tried for barriers. */
const tried = new Set<string>()

/** A heading, something to press, and no words of a program that stand alone. Each page is tried for barriers once. */
async function judge({ page, expect }: Scene): Promise<void> {
  const text = await main(page).innerText()
  const heading = (await page.getByRole('heading', { level: 2 }).first().innerText()).trim()
  expect(heading).not.toBe('')
  for (const line of text.split('\n')) {
    const [own = ''] = line.split(/(?:The wallet says|did not connect):/)
    expect(own).not.toContain(WALLET_SAYS)
    expect(own).not.toMatch(RAW)
  }
  const presses = page.locator('.screen').locator('button:enabled, a[href], summary')
  expect(await presses.count(), text).toBeGreaterThan(0)
  expect(await isTooWide(page)).toBe(false)
  if (tried.has(heading)) return
  tried.add(heading)
  expect(await findBarriers(page)).toEqual([])
}

const button = (page: Page, name: string) => page.getByRole('button', { name })

/**
 * What somebody presses who reads the page and wants to pay.
 *
 * @returns whether nothing is left to do
 */
async function step(scene: Scene): Promise<boolean> {
  const { page, row, event } = scene
  const heading = await page.getByRole('heading', { level: 2 }).first().innerText()
  if (SETTLED.test(heading)) return true
  const isSeen = (what: Locator) => what.isVisible()
  const givesUp = button(page, 'My wallet shows no request')
  const back = button(page, 'Back to the ways to pay')
  const other = button(page, 'Choose another wallet')
  const confirm = page.getByRole('dialog').getByRole('button', { name: 'Confirm' })
  if (/cannot pay/.test(heading)) scene.isOther = true
  if (await isSeen(confirm)) await confirm.click()
  else if (await isSeen(givesUp)) {
    // The wallet has sent it: its payer sees it there and waits.
    if (!isSent(row, event)) await givesUp.click()
  } else if (await isSeen(back)) await back.click()
  else if (scene.isOther && !scene.hasOther && (await isSeen(other))) await other.click()
  else if (heading.startsWith('Choose a wallet')) {
    const isDirect = row.wallet?.account === 'direct'
    scene.hasOther = scene.isOther
    await connect(page, scene.isOther ? (isDirect ? 'otherToken' : 'direct') : NAME)
  } else if (await isSeen(payButton(page))) await payButton(page).click()
  else await wait(scene)
  return false
}

/** Until the request's own state is shown: the same after a reload, when nothing is asked of a wallet. */
async function endWell(scene: Scene): Promise<void> {
  const { page, row, event, due, expect } = scene
  await expect.poll(() => step(scene), { timeout: 90_000, interval: 200 }).toBe(true)
  await judge(scene)
  // It is said for a moment, which a machine with much to do may miss afterwards.
  const copied = page.locator('.screen').getByText('Copied').first().waitFor()
  await page.locator('.screen .copy').first().click()
  await copied
  const heading = page.getByRole('heading', { level: 2 }).first()
  const isClosed = CLOSING[event] !== undefined && isAsked(row)
  if (row.due !== 'TO_PAYER' && !isClosed) expect(await scene.paid()).toBe(due)
  await page.reload()
  await heading.waitFor()
  await expect.poll(() => heading.innerText()).toMatch(SETTLED)
  // What was sent too late is counted all the same.
  if (isClosed && row.sends !== true) expect(await heading.innerText()).toMatch(CLOSING[event] as RegExp)
  await judge(scene)
  expect([await payButton(page).count(), await questionsOf(page)]).toEqual([0, []])
}
