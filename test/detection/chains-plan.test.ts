import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { ChainConfig } from '../../src/chains/chains-file.ts'
import type { BackfillPlan } from '../../src/detection/backfill/plan-backfill.ts'
import { createLimitsKeeper } from '../../src/detection/limits/keep-node-limits.ts'
import type { Account } from '../../src/domain/account.ts'
import { caip2Of } from '../../src/domain/chain.ts'
import { sizeAfterRefused, startSize } from '../../src/nodes/learned-size.ts'
import { createNodeLimits } from '../../src/nodes/node-limits.ts'
import { acquireLease, releaseLease } from '../../src/store/leases-repository.ts'
import { startTestChain, type TestChain } from '../support/chains/chain.ts'
import { type RpcProxy, startRpcProxy } from '../support/chains/rpc-proxy.ts'
import { createTestDatabase, type TestDatabase, urlOfDatabase } from '../support/data/database.ts'
import { addAccount, canonical, configOf, detect, makeRequest, storeRequest } from '../support/detection.ts'
import { silentLogger } from '../support/logs.ts'
import { runCommand } from '../support/run-command.ts'
import { makeTempFolder } from '../support/temp-folder.ts'

const BLOCKS = 60

let chain: TestChain
let proxy: RpcProxy
let database: TestDatabase
let account: Account
let folder: string
let final: number

beforeAll(async () => {
  folder = await makeTempFolder('chains-plan')
  chain = await startTestChain({ chainId: 31_455, automine: false })
  proxy = await startRpcProxy(chain.rpcUrl)
  database = await createTestDatabase({ poolMax: 4 })
  account = await addAccount(database.knex, 'shop')
  const [payer] = chain.wallets
  await chain.fund(chain.tokens.USDC, payer, 1_000_000000n)
  await chain.approve(payer, chain.tokens.USDC, chain.contracts.erc20FeeProxy, 1_000_000000n)
  // Half of the events are of a request that is stored.
  const [known, unknown] = [0, 1].map(() => makeRequest({ payee: canonical(chain.wallets[3]), network: 'BASE' }))
  if (known !== undefined) await storeRequest(database.knex, account, known)
  for (let block = 0; block < BLOCKS; block++) {
    for (const request of [known, unknown]) {
      const to = chain.wallets[3]
      const paymentReference = request?.paymentReference ?? '0x'
      await chain.pay(payer, { kind: 'ERC20', token: chain.tokens.USDC.address, to, amount: 1n, paymentReference })
    }
    await chain.mine()
  }
  final = Number((await chain.client.head()).number) - 3
})
afterEach(async () => {
  proxy.meddle()
  await database.knex('node_limits').delete()
})
afterAll(async () => {
  await proxy?.stop()
  await chain?.stop()
  await database?.drop()
  await rm(folder, { recursive: true, force: true })
})

async function plan(words: readonly string[], change: Partial<ChainConfig> = {}) {
  const file = join(folder, 'chains.json')
  const config = { ...configOf(chain, 'BASE', { rpcUrls: [proxy.url] }), ...change }
  await writeFile(file, JSON.stringify({ chains: [config] }))
  return runCommand({ CHAINS_FILE: file, DATABASE_URL: urlOfDatabase(database) }, ['chains', 'plan', ...words])
}

async function planned(change: Partial<ChainConfig> = {}): Promise<BackfillPlan> {
  const { code, stdout, stderr } = await plan(['--json'], change)
  expect([code, stderr]).toEqual([0, ''])
  return JSON.parse(stdout) as BackfillPlan
}

const limitedTo = (blocks: number) =>
  proxy.meddle(({ method, params: [filter] }) => {
    const { fromBlock, toBlock } = (method === 'eth_getLogs' ? filter : {}) as { fromBlock?: string; toBlock?: string }
    if (fromBlock === undefined || Number(toBlock) - Number(fromBlock) < blocks) return undefined
    return Promise.resolve({ rpcError: { code: -32_602, message: 'query exceeds max block range' } })
  })

describe('waybill chains plan', () => {
  it('says blocks, calls and time of a chain that was never read', async () => {
    const said = await planned({ startBlock: 1, requestsPerSecond: 20 })
    expect(said).toMatchObject({ network: 'BASE', from: 1, to: final, blocks: final, requestsPerSecond: 20 })
    expect(said.requests).toBe(Math.ceil(final / said.blocksPerCall) + Math.ceil(said.knownEvents / 100))
    expect(said.calls).toBe(2 * Math.ceil(final / said.blocksPerCall) + said.knownEvents)
    expect(said.seconds).toBe(Math.ceil(said.requests / 20))
    // A few of the payments are not final, and the samples overlap at the end.
    expect(said.events / (2 * BLOCKS)).toBeGreaterThan(0.8)
    expect(said.knownEvents / said.events).toBeCloseTo(0.5, 1)
  })

  it('finds the widest range that the node takes', async () => {
    limitedTo(5)
    const { blocksPerCall, calls, knownEvents } = await planned({ startBlock: 1 })
    expect(blocksPerCall).toBeGreaterThan(2)
    expect(blocksPerCall).toBeLessThanOrEqual(5)
    expect(calls).toBe(2 * Math.ceil(final / blocksPerCall) + knownEvents)
  })

  it('keeps to the limits of the chains file, and counts what it asks in the daily budget', async () => {
    const limited = { url: proxy.url, maxLogRange: 7, maxBatch: 1, requestsPerDay: 600_000 }
    const said = await planned({ startBlock: 1, rpcUrls: [limited] as never })
    const steps = Math.ceil(final / 7)
    expect(said).toMatchObject({ blocksPerCall: 7, requests: 2 * steps + said.knownEvents, boundBy: 'RATE' })
    // Following takes 86,400 looks of two blocks, and two requests for each of 43,200 blocks.
    expect(said.requestsPerDay).toBe(600_000 - 1.2 * (2 * 86_400 + 2 * 43_200))
    const [row] = await database.knex('node_limits').where({ host: new URL(proxy.url).host })
    expect(Number(row?.used)).toBeGreaterThan(16)
  })

  it('begins with the range that the service has learned', async () => {
    const config = configOf(chain, 'BASE', { rpcUrls: [proxy.url] })
    const limits = createNodeLimits([config])
    const blocks = sizeAfterRefused(startSize(2_000, 100_000), 2_000, 5)
    limits.of(proxy.url).noteLogRange({ blocks, denseBlocks: Number.POSITIVE_INFINITY }, 5)
    const lease = { name: `follow:${caip2Of(chain.chainId)}`, owner: 'service' }
    await acquireLease(database.knex, lease, 60_000)
    const { knex } = database
    await createLimitsKeeper({ knex, chains: [config], limits, logger: silentLogger, owner: 'service' }).store()
    await releaseLease(database.knex, lease)
    expect((await planned({ startBlock: 1 })).blocksPerCall).toBe(5)
  })

  it.each<[string, startBlock: number | undefined, fromBlock: number, first: number]>([
    ['startBlock', 50, 40, 50],
    ['the first block of its contracts', 0, 40, 40],
    ['the oldest request', undefined, 0, 1],
  ])('begins at %s', async (_, startBlock, fromBlock, first) => {
    const contracts = configOf(chain, 'BASE').contracts.map((contract) => ({ ...contract, fromBlock }))
    expect(await planned({ startBlock, contracts })).toMatchObject({ from: first })
  })

  it('prints a table, in which a chain that is read has nothing left', async () => {
    const config = configOf(chain, 'BASE', { rpcUrls: [proxy.url] })
    const before = await plan(['--chain', 'base'])
    expect(before.stdout).toMatch(/^CHAIN +FROM +TO +BLOCKS .* TIME\nBASE +1 +\d+ +\d+ .* \d+ s\n$/)
    await detect(database.knex, [config]).scanOnce()
    const after = await plan([])
    expect([after.code, after.stdout]).toEqual([0, expect.stringMatching(/\nBASE +- +- +0 .* nothing to read\n$/)])
  })

  it('exits with 1 where a chain does not answer, and shows no key', async () => {
    const { code, stdout, stderr } = await plan(['--json'], { rpcUrls: ['http://127.0.0.1:1/v3/k3y-of-the-node'] })
    expect([code, stdout]).toEqual([1, ''])
    expect(stderr).toMatch(/^BASE: .*127\.0\.0\.1:1/)
    expect(stderr).not.toContain('k3y-of-the-node')
  })

  it.each<[string, string[], RegExp]>([
    ['a chain that the file lacks', ['--chain', 'FANTOM'], /the chains file has no chain "FANTOM"/],
    ['an empty name', ['--chain', ''], /chain ""/],
    ['a word', ['BASE'], /BASE/],
    ['an unknown option', ['--blocks', '5'], /--blocks/],
    ['a value for --json', ['--json=yes'], /json/],
    ['--chain without a value', ['--chain'], /--chain/],
  ])('refuses %s', async (_, words, message) => {
    const { code, stdout, stderr } = await plan(words)
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toMatch(message)
  })
})
