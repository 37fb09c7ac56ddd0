import { spawn, spawnSync } from 'node:child_process'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createWaybill, type Waybill } from '../../clients/typescript/src/public.ts'
import { createApiKeyRepository } from '../../src/auth/sql/api-key-repository.ts'
import { importPayments } from '../../src/imports/import-payments.ts'
import { importLines } from '../../src/imports/lines/import-lines.ts'
import { findFreePort } from '../support/data/free-port.ts'
import { freshAddress } from '../support/routing.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { makeTempFolder } from '../support/temp-folder.ts'
import { runExamples } from './run-examples.ts'
import { createTestWallet } from './test-wallet.ts'

// The examples of the client's README and of the guides that use it, run as they stand.

let running: TestService
let waybill: Waybill
let window: { readonly ethereum: ReturnType<typeof createTestWallet> }
let following: ReturnType<typeof setInterval>
let lastCheck: Promise<unknown> = Promise.resolve()
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
    lastCheck = chain
      .mine()
      .then(() => service.detection.scanOnce())
      .finally(() => {
        isBusy = false
      })
  }, 50)
})
afterAll(async () => {
  clearInterval(following)
  await lastCheck
  await running?.stop()
})

it("the client's README", async () => {
  const lines: unknown[] = []
  const console = { log: (...words: unknown[]) => lines.push(words[0]) }
  const { watchCursor: lastCursor } = await waybill.searchPayments({})
  const csv: Uint8Array[] = []
  const stdout = { write: (piece: Uint8Array) => csv.push(piece) }
  const scope = { process: { ...process(), stdout }, provider: window.ethereum, console, lastCursor }
  await runExamples('clients/typescript/README.md', scope)
  expect(lines).toContain('STEP_MINED')
  expect(Buffer.concat(csv).toString()).toMatch(/^timestamp,amount,currency\r\n.*,5,USDC-ETHEREUM\r\n\r\n$/)
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
  const show = (text: string) => shown.push(text)
  await runExamples('docs/guides/checkout-with-a-wallet.md', { page, ethereum: window.ethereum, show })
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

it('accept payments in a web shop', async () => {
  const shown: string[] = []
  const port = await findFreePort()
  const { url, keys, chain } = running
  await chain.fund(chain.tokens.USDC, chain.wallets[0], 100_000_000n)
  // The page's key is a secret one here, since Node has no origin; a browser is tried by `npm run try:browser`.
  const shop = {
    PUBLISHABLE_KEY: keys.shop,
    SHOP_WALLET: freshAddress('the shop of the first guide'),
    PORT: String(port),
  }
  const env = { WAYBILL_URL: url, WAYBILL_KEY: keys.shop, ...shop }
  const show = (text: string) => shown.push(text)
  let stopShop = () => {}
  const once = (_: string, stop: () => void) => {
    stopShop = stop
  }
  const shopUrl = `http://127.0.0.1:${port}`
  const scope = { process: { env, once }, provider: window.ethereum, show, shop: shopUrl, console }
  await runExamples('docs/guides/accept-payments.md', scope).finally(() => stopShop())
  expect(shown).toContain('49.9 USDC on ETHEREUM')
  expect(shown).toContain('MINED')
  expect(shown.at(-1)).toBe('delivered')
})

it('coming from Request Network', async () => {
  const shown: string[] = []
  const payee = freshAddress('the shop that came over')
  const [wallet] = running.chain.wallets
  const show = (text: string) => shown.push(text)
  const scope = { process: process(), payee, wallet, provider: window.ethereum, show }
  await runExamples('docs/guides/coming-from-request-network.md', scope)
  expect(shown[0]).toBe('OPEN')
  expect(shown[1]).toMatch(/^USDC on ETHEREUM: 0\.\d+ USDC-ETHEREUM, FAST$/)
  expect(shown.some((text) => /^no \w+ on ETHEREUM: .+; .+$/.test(text))).toBe(true)
  expect(shown.at(-1)).toMatch(/^12\.5 USDC-ETHEREUM in 0x[0-9a-f]{64}$/)
})

it.each([
  ['coinbase-commerce', [/^http:\S+\/pay\/0x[0-9a-f]{16}\?key=wbp_page$/, /^OPEN id_1005$/]],
  ['btcpay', [/^OPEN$/, /^CANCELLED$/]],
])('coming from %s', async (name, expected) => {
  const shown: string[] = []
  const env = { ...process().env, PUBLISHABLE_KEY: 'wbp_page' }
  const show = (text: string) => shown.push(text)
  const scope = { process: { env }, payee: freshAddress(`the shop from ${name}`), show }
  await runExamples(`docs/guides/coming-from-${name}.md`, scope)
  expect(shown).toEqual(expected.map((pattern) => expect.stringMatching(pattern)))
})

const hasPython = spawnSync('python3', ['--version']).status === 0

it.skipIf(!hasPython)('reconcile in Python', async () => {
  const guide = readFileSync(new URL('../../docs/guides/reconcile.md', import.meta.url), 'utf8')
  const [, program = ''] = /^```python\n(.*?)^```$/ms.exec(guide) ?? []
  const folder = await makeTempFolder('reconcile')
  await importInto()
  writeFileSync(
    join(folder, 'books.csv'),
    'reference,currency,amount\nA-1,USDC-ETHEREUM,10.5\nA-2,USDC-ETHEREUM,7\nA-4,USDC-ETHEREUM,1\n',
  )
  const env = { ...globalThis.process.env, WAYBILL_URL: running.url, WAYBILL_KEY: running.keys.shop }
  const args = ['-c', program, '2025-05-01', '2025-05-31', join(folder, 'books.csv')]
  const child = spawn('python3', args, { env, stdio: ['ignore', 'pipe', 'inherit'] })
  expect((await text(child.stdout)).split('\n')).toEqual([
    'A-2: 7.000000000000000001 USDC-ETHEREUM paid, 7 booked',
    'A-3: 3 USDC-ETHEREUM paid, 0 booked',
    'A-4: 0 USDC-ETHEREUM paid, 1 booked',
    '',
  ])
  rmSync(folder, { recursive: true })
})

/** Payments of May 2025, one in two parts, one outside of the month, one that failed, one superseded. */
async function importInto(): Promise<void> {
  const { knex } = running.database
  const account = await createApiKeyRepository(knex).ensureAccount('shop')
  const rows = [
    ['A-1', '4.5', '2025-05-01T00:00:00Z', 'CONFIRMED'],
    ['A-1', '6', '2025-05-31T23:59:59Z', 'CONFIRMED'],
    ['A-2', '7.000000000000000001', '2025-05-03T12:00:00Z', 'CONFIRMED'],
    ['A-3', '3', '2025-05-04T12:00:00Z', 'CONFIRMED'],
    ['A-4', '1', '2025-06-01T00:00:00Z', 'CONFIRMED'],
    ['A-4', '1', '2025-05-05T12:00:00Z', 'FAILED'],
    ['A-2', '7', '2025-05-03T12:00:00Z', 'CONFIRMED', true],
  ] as const
  const lines = rows.map(([reference, amount, timestamp, status, superseded], nth) =>
    JSON.stringify({
      id: `00000000-0000-4000-8000-${String(nth).padStart(12, '0')}`,
      reference,
      amount,
      timestamp,
      status,
      superseded,
      currency: 'USDC-ETHEREUM',
      network: 'ETHEREUM',
    }),
  )
  const { bad } = await importLines(Readable.from([Buffer.from(lines.join('\n'))]), importPayments(knex, account))
  expect(bad).toBe(0)
}
