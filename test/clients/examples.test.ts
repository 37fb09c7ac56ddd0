import { afterAll, beforeAll, expect, it } from 'vitest'
import { createWaybill, type Waybill } from '../../clients/typescript/src/public.ts'
import { freshAddress } from '../support/routing.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { runExamples } from './run-examples.ts'
import { createTestWallet } from './test-wallet.ts'

// The examples of the client's README and of the guides that use it, run as they stand.

let running: TestService
let waybill: Waybill
let window: { readonly ethereum: ReturnType<typeof createTestWallet> }
let following: ReturnType<typeof setInterval>
const process = () => ({ env: { WAYBILL_URL: running.url, WAYBILL_KEY: running.keys.shop } })

beforeAll(async () => {
  running = await startTestService()
  const { chain, service } = running
  waybill = createWaybill({ baseUrl: running.url, apiKey: running.keys.shop })
  const payer = chain.wallets[0]
  await chain.fund(chain.tokens.USDC, payer, 100_000_000n)
  window = { ethereum: createTestWallet(chain, payer) }
  let isBusy = false
  // Blocks come, and are read, as in life.
  following = setInterval(() => {
    if (isBusy) return
    isBusy = true
    void chain
      .mine()
      .then(() => service.detection.scanOnce())
      .finally(() => {
        isBusy = false
      })
  }, 50)
})
afterAll(async () => {
  clearInterval(following)
  await running?.stop()
})

it("the client's README", async () => {
  const lines: unknown[] = []
  const console = { log: (...words: unknown[]) => lines.push(words[0]) }
  const { watchCursor: lastCursor } = await waybill.searchPayments({})
  await runExamples('clients/typescript/README.md', { process: process(), window, console, lastCursor })
  expect(lines).toContain('STEP_MINED')
})

it('a checkout with a wallet', async () => {
  const shown: string[] = []
  const { paymentReference } = await waybill.createPaymentRequest({
    payee: freshAddress('the shop of the guide'),
    amount: '7',
    invoiceCurrency: 'USDC-ETHEREUM',
    paymentCurrency: 'USDC-ETHEREUM',
  })
  const page = { waybillUrl: running.url, publishableKey: running.keys.shop, paymentReference }
  await runExamples('docs/guides/checkout-with-a-wallet.md', { page, window, show: (text: string) => shown.push(text) })
  expect(shown).toContain('7 USDC on ETHEREUM')
  expect(shown).toContain('Paid. We wait for the confirmations.')
  expect(shown.at(-1)).toBe('7 of 7 paid')
})

it('follow payments live', async () => {
  const booked = new Map<string, unknown>()
  const aborter = new AbortController()
  let cursor: string | undefined
  const store = {
    cursor: async () => cursor,
    setCursor(next: string) {
      cursor = next
      aborter.abort(new Error('stopped by the test'))
    },
  }
  const scope = {
    process: process(),
    store,
    stopping: aborter.signal,
    book: async (id: string, payment: unknown) => booked.set(id, payment),
    unbook: async (id: string) => booked.delete(id),
    console: { log: () => undefined },
  }
  await runExamples('docs/guides/follow-payments-live.md', scope)
  const stored: string[] = []
  for await (const { id } of waybill.eachPayment()) stored.push(id)
  expect(stored.length).toBeGreaterThan(1)
  expect([...booked.keys()].toSorted()).toEqual(stored.toSorted())
  expect(cursor).toBeDefined()
})
