/** What comparing nodes by sample costs, on a chain whose nodes answer rightly: calls with `sampleLogs` 50, the default, beside calls with 0. */
import { keccak256 } from 'viem'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { startTestChain, type TestChain } from '../support/chains/chain.ts'
import { type RpcProxy, startRpcProxy } from '../support/chains/rpc-proxy.ts'
import { createTestDatabase, type TestDatabase } from '../support/data/database.ts'
import { addAccount, canonical, configOf, detect, makeRequest, storeRequest } from '../support/detection.ts'

/** As at a narrow provider. */
const LOG_RANGE = 10
const OLD_BLOCKS = 2_000
const NEW_BLOCKS = 200
const BLOCKS_A_PAYMENT = 10
const SAMPLES = [50, 0] as const

let chain: TestChain
const databases: TestDatabase[] = []
const proxies: RpcProxy[] = []
beforeAll(async () => {
  chain = await startTestChain({ chainId: 31_577 })
})
afterAll(async () => {
  await Promise.all(proxies.map((proxy) => proxy.stop()))
  await Promise.all([chain?.stop(), ...databases.map((database) => database.drop())])
})

it('samples cost less than a twentieth of the calls', async () => {
  await chain.mine({ blocks: OLD_BLOCKS })
  const followers = await Promise.all(SAMPLES.map(open))
  const readAll = () => Promise.all(followers.map(({ detection }) => detection.scanOnce()))
  await readAll()
  const old = callsOf(followers)
  for (let block = 0; block < NEW_BLOCKS; block++) {
    if (block % BLOCKS_A_PAYMENT === 0) await pay(followers)
    else await chain.mine()
    await readAll()
  }
  const all = callsOf(followers)
  const followed = all.map((calls, index) => calls - (old[index] ?? 0))
  for (const [what, [withSamples = 0, without = 1]] of Object.entries({ backfill: old, following: followed })) {
    const share = withSamples / without - 1
    console.log(`${what}: ${withSamples} calls with samples, ${without} without: ${(share * 100).toFixed(1)} % more`)
    expect([share > 0, share < 0.05]).toEqual([true, true])
  }
  await Promise.all(followers.map(({ detection }) => detection.stop()))
})

async function open(sampleLogs: number) {
  const [database, ...nodes] = await Promise.all([
    createTestDatabase(),
    ...[0, 1].map(() => startRpcProxy(chain.rpcUrl)),
  ])
  databases.push(database)
  proxies.push(...nodes)
  const account = await addAccount(database.knex, 'shop')
  const rpcUrls = nodes.map(({ url }) => url)
  const nodeLimits = Object.fromEntries(rpcUrls.map((url) => [url, { maxLogRange: LOG_RANGE }]))
  const config = { ...configOf(chain, 'BASE', { rpcUrls, nodeLimits }), sampleLogs, startBlock: 0 }
  return { database, account, nodes, detection: detect(database.knex, [config]) }
}

type Follower = Awaited<ReturnType<typeof open>>

const callsOf = (followers: readonly Follower[]) =>
  followers.map(({ nodes }) => nodes.reduce((sum, { calls }) => sum + calls.length, 0))

let requests = 0
async function pay(followers: readonly Follower[]): Promise<void> {
  const payee = canonical(`0x${keccak256(new TextEncoder().encode(`samples ${requests++}`)).slice(-40)}`)
  const request = makeRequest({ payee, network: 'BASE', paymentCurrency: 'ETH-BASE', amount: '1' })
  await Promise.all(followers.map(({ database, account }) => storeRequest(database.knex, account, request)))
  const { paymentReference } = request
  await chain.pay(chain.wallets[0], { kind: 'NATIVE', to: payee, amount: 10n ** 18n, paymentReference })
}
