/** `verify` over many blocks of a real node: how fast, how many calls, how much memory; and a real process that is stopped. */
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Knex } from 'knex'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { ChainConfig } from '../../src/chains/chains-file.ts'
import { createTokenDirectory } from '../../src/chains/token-directory.ts'
import { toQuantity } from '../../src/contracts/words.ts'
import { verifyChain } from '../../src/detection/verify/verify-chain.ts'
import type { Hex } from '../../src/domain/hex.ts'
import { startTestChain, type TestChain } from '../support/chains/chain.ts'
import { type RpcProxy, startRpcProxy } from '../support/chains/rpc-proxy.ts'
import { createTestDatabase, type TestDatabase, urlOfDatabase } from '../support/data/database.ts'
import { addAccount, configOf, detect, makeRequest, storeRequest } from '../support/detection.ts'
import { silentLogger } from '../support/logs.ts'
import { startWaybill } from '../support/process.ts'
import { freshAddress } from '../support/routing.ts'
import { makeTempFolder } from '../support/temp-folder.ts'

/** anvil mines about a hundred blocks a second. */
const BLOCKS = 3_000
const PAYMENTS = 20
const HEADERS_A_REQUEST = 99

let database: TestDatabase
let knex: Knex
let chain: TestChain
let config: ChainConfig
let proxy: RpcProxy
let folder: string
beforeAll(async () => {
  ;[database, chain] = await Promise.all([createTestDatabase(), startTestChain({ chainId: 31_572 })])
  knex = database.knex
  config = configOf(chain, 'BASE')
  proxy = await startRpcProxy(chain.rpcUrl)
  folder = await makeTempFolder('verify-range')
  const shop = await addAccount(knex, 'shop')
  const [payer] = chain.wallets
  const { address: token } = chain.tokens.USDC
  await chain.fund(chain.tokens.USDC, payer, 10n ** 12n)
  for (let paid = 0; paid < PAYMENTS; paid++) {
    const request = makeRequest({ payee: freshAddress(`payee ${paid}`), network: 'BASE' })
    const { payee, paymentReference } = await storeRequest(knex, shop, request)
    await chain.pay(payer, { kind: 'ERC20', token, to: payee as string as Hex, amount: 1_000000n, paymentReference })
  }
  await chain.client.rpc.call('anvil_mine', [toQuantity(BLOCKS)])
  await detect(knex, [config]).scanOnce()
})
afterAll(async () => {
  await Promise.all([chain?.stop(), proxy?.stop(), rm(folder, { recursive: true })])
  await database?.drop()
})

async function verify(options: Partial<Parameters<typeof verifyChain>[0]> = {}) {
  const tokens = createTokenDirectory([config])
  let peak = 0
  const startedMs = performance.now()
  const report = await verifyChain({
    knex,
    chain: config,
    tokens,
    clock: () => new Date(),
    logger: silentLogger,
    onProgress: () => {
      peak = Math.max(peak, process.memoryUsage().rss)
    },
    ...options,
  })
  const seconds = (performance.now() - startedMs) / 1_000
  return { report, perSecond: Math.round(report.counts.blocks / seconds), peakMiB: Math.round(peak / 2 ** 20) }
}

it('asks once for each block and its receipts only where there are payments, and needs no more memory for more blocks', async () => {
  const short = await verify({ to: BLOCKS / 4 })
  const whole = await verify()
  expect(whole.report).toMatchObject({ differences: [], unproven: [], counts: { payments: PAYMENTS } })
  expect(whole.report.counts.receiptsRead).toBeLessThanOrEqual(2 * PAYMENTS)
  expect(whole.peakMiB - short.peakMiB).toBeLessThan(64)
  const [calls, exchanges] = [proxy.calls.length, proxy.exchanges()]
  await verify({ chain: { ...config, rpcUrls: [proxy.url] } })
  const callsABlock = (proxy.calls.length - calls) / whole.report.counts.blocks
  // The chain id with each request of headers. Of a payment its block's receipts, and what its token and the gas were worth.
  expect(callsABlock).toBeLessThan(1 + 1 / HEADERS_A_REQUEST + (4 * PAYMENTS) / whole.report.counts.blocks)
  const requests = proxy.exchanges() - exchanges
  // The chain id for headers and for prices, the pinned block three times, and of all prices together the round at the block, the newest
  // round (anvil has no older state), their decimals likewise, and the round before.
  const once = 2 + 3 + 5
  // Receipts of a block can be megabytes, so each has its own request.
  expect(requests).toBeLessThanOrEqual(Math.ceil(whole.report.counts.blocks / HEADERS_A_REQUEST) + PAYMENTS + once)
  process.stdout.write(
    `${JSON.stringify({ blocks: whole.report.counts.blocks, blocksASecond: whole.perSecond, callsABlock, requests, peakMiB: [short.peakMiB, whole.peakMiB] })}\n`,
  )
})

it.each(['SIGINT', 'SIGTERM'] as const)('a real process ends by %s with 130 and says how to go on', async (signal) => {
  // So slow that it is stopped on its way.
  proxy.meddle(({ method }, ask) => (method === 'eth_getBlockByNumber' ? sleep(100).then(ask) : undefined))
  const file = join(folder, 'chains.json')
  const slow = { ...chain.config({ name: 'BASE', finalityDepth: 3 }), rpcUrls: [proxy.url] }
  await writeFile(file, JSON.stringify({ chains: [slow] }))
  const environment = { CHAINS_FILE: file, DATABASE_URL: urlOfDatabase(database), DATA_DIR: folder }
  const verifying = startWaybill(['verify', '--chain', 'BASE', '--json'], environment)
  await verifying.says(/BASE: [\d,]+ of [\d,]+ blocks, [\d,]+ a second, .* left/, 'stderr')
  verifying.kill(signal)
  const { code, stdout, stderr } = await verifying.ended
  expect({ code, stdout }).toEqual({ code: 130, stdout: '' })
  expect(stderr).toContain(`stopped by ${signal}: `)
  expect(stderr).toMatch(/to continue: waybill verify --chain BASE --from \d+\n$/)
  proxy.meddle()
})
