import type { Knex } from 'knex'
import { keccak256 } from 'viem'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Detection } from '../../src/detection/detection.ts'
import type { Account } from '../../src/domain/account.ts'
import type { Hex } from '../../src/domain/hex.ts'
import type { PaymentRequest } from '../../src/domain/payment-request.ts'
import { startTestChain, type TestChain } from '../support/chains/chain.ts'
import { type Meddle, type RpcProxy, startRpcProxy } from '../support/chains/rpc-proxy.ts'
import { createTestDatabase, type TestDatabase } from '../support/data/database.ts'
import { addAccount, canonical, configOf, detect, makeRequest, paymentsOf, storeRequest } from '../support/detection.ts'

const COIN = 10n ** 18n

let database: TestDatabase
let knex: Knex
let chain: TestChain
let duplicate: TestChain
let misreporter: RpcProxy
let honest: RpcProxy
let detection: Detection
let account: Account
beforeAll(async () => {
  ;[database, chain, duplicate] = await Promise.all([
    createTestDatabase(),
    startTestChain({ chainId: 31_471 }),
    startTestChain({ chainId: 31_471, genesisTimeSec: 1_700_000_000 }),
  ])
  await duplicate.mine({ blocks: 100 })
  ;[misreporter, honest] = await Promise.all([startRpcProxy(chain.rpcUrl), startRpcProxy(chain.rpcUrl)])
  knex = database.knex
  account = await addAccount(knex, 'shop')
})
afterAll(async () => {
  await Promise.all([misreporter, honest].map((proxy) => proxy?.stop()))
  await Promise.all([chain?.stop(), duplicate?.stop(), database?.drop()])
})

let requests = 0
let runs = 0
/** By how much the clock of detection is ahead. */
let aheadMs = 0
async function request(): Promise<PaymentRequest> {
  const payee = canonical(`0x${keccak256(new TextEncoder().encode(`misreporting nodes ${requests++}`)).slice(-40)}`)
  return storeRequest(knex, account, makeRequest({ payee, network: 'BASE', paymentCurrency: 'ETH-BASE', amount: '1' }))
}

async function pay({ payee, paymentReference }: PaymentRequest): Promise<Hex> {
  const payment = { kind: 'NATIVE', to: payee as Hex, amount: COIN, paymentReference } as const
  return (await chain.pay(chain.wallets[0], payment)).transactionHash
}

/** The stored payments of a request. */
const stored = async (wanted: PaymentRequest) =>
  (await paymentsOf(knex, account, wanted)).map(({ amount, status, txHash }) => ({ amount, status, txHash }))

/** Reads the chain whether or not that fails: what counts is what is stored afterwards. */
async function scanSomehow(): Promise<void> {
  await detection.scanOnce().catch(() => {})
}

type Log = Record<'topics' | 'data' | 'transactionHash' | 'blockHash', unknown> & { topics: Hex[]; data: Hex }
type Change = (log: Log, unpaid: PaymentRequest) => Log[]

const topicOf = ({ paymentReference }: PaymentRequest) => keccak256(paymentReference)

/** Changes the answers of `eth_getLogs`, or those of other calls. */
const inLogs =
  (change: Change) =>
  (unpaid: PaymentRequest): Meddle =>
  ({ method }, ask) =>
    method === 'eth_getLogs' ? ask().then((logs) => (logs as Log[]).flatMap((log) => change(log, unpaid))) : undefined

const otherHash = `0x${'77'.repeat(32)}` as const
/** The false answers of a node. */
const lies: readonly { name: string; lie: (unpaid: PaymentRequest) => Meddle }[] = [
  {
    name: 'is another chain',
    lie: () => (call) => Promise.resolve(call.method === 'eth_chainId' ? '0x1' : []),
  },
  {
    name: 'has another history under the same id',
    lie:
      () =>
      ({ method, params }) =>
        duplicate.client.rpc.call(method, [...params]),
  },
  {
    name: 'has logs that stand in no receipt',
    lie: inLogs((log, unpaid) => [log, { ...log, topics: [log.topics[0] as Hex, topicOf(unpaid)] }]),
  },
  {
    name: 'has other amounts in its logs',
    lie: inLogs((log) => [{ ...log, data: log.data.replace('0de0b6', '1bc16d') as Hex }]),
  },
  {
    name: 'has logs of transactions that nobody sent',
    lie: inLogs((log, unpaid) => [
      log,
      { ...log, topics: [log.topics[0] as Hex, topicOf(unpaid)], transactionHash: otherHash },
    ]),
  },
  {
    name: 'has receipts of another block',
    lie: () => (call, ask) =>
      call.method === 'eth_getTransactionReceipt'
        ? ask().then((receipt) => ({ ...(receipt as object), blockHash: otherHash }))
        : undefined,
  },
  {
    name: 'is far ahead of its own blocks',
    lie: () => (call, ask) =>
      call.method === 'eth_getBlockByNumber' && call.params[0] === 'latest'
        ? ask().then((block) => ({ ...(block as object), number: '0xfffff', hash: otherHash }))
        : undefined,
  },
]

describe('a node that lies, before one that does not,', () => {
  const begin = () =>
    detect(knex, [configOf(chain, 'BASE', { rpcUrls: [misreporter.url, honest.url] })], {
      owner: `run ${runs++}`,
      clock: () => new Date(Date.now() + aheadMs),
    })
  beforeEach(async () => {
    detection = begin()
    await detection.scanOnce()
  })
  afterEach(async () => {
    misreporter.meddle()
    misreporter.fail()
    honest.fail()
    aheadMs = 0
    await detection.stop()
    await knex('leases').delete()
  })

  it.each(lies)('causes neither missing nor false payments: one that $name', async ({ lie }) => {
    const [paid, unpaid] = [await request(), await request()]
    misreporter.meddle(lie(unpaid))
    const txHash = await pay(paid)
    const truth = { amount: '1', txHash }
    for (let scans = 0; scans < 3; scans++) await scanSomehow()
    expect(await stored(unpaid)).toEqual([])
    expect(await stored(paid)).toEqual([{ ...truth, status: 'PENDING' }])
    expect(detection.status()[0]?.alarm).toBeUndefined()

    misreporter.meddle()
    await detection.scanOnce()
    expect(await stored(paid)).toEqual([{ ...truth, status: 'PENDING' }])
    await chain.mine({ blocks: 3 })
    await detection.scanOnce()
    expect(await stored(paid)).toEqual([{ ...truth, status: 'CONFIRMED' }])
    expect(await stored(unpaid)).toEqual([])
  })

  it('and has another history stops the chain for good after a minute in which no other node answers', async () => {
    const paid = await request()
    const txHash = await pay(paid)
    misreporter.meddle(({ method, params }) => duplicate.client.rpc.call(method, [...params]))
    honest.fail(503)
    await scanSomehow()
    expect([detection.status()[0]?.alarm, await stored(paid)]).toEqual([undefined, []])
    honest.fail()
    aheadMs += 31_000
    await detection.scanOnce()
    expect(await stored(paid)).toEqual([{ amount: '1', txHash, status: 'PENDING' }])

    honest.fail(503)
    aheadMs += 31_000
    await scanSomehow()
    expect(detection.status()[0]?.alarm).toBeUndefined()
    aheadMs += 61_000
    await scanSomehow()
    expect(detection.status()[0]?.alarm).toMatch(/was final with hash/)
    misreporter.meddle()
    await detection.restartFrom('BASE', await chain.client.head().then(({ number }) => Number(number)))
    await detection.scanOnce()
    expect(detection.status()[0]?.alarm).toBeUndefined()
  })

  it('and is on a branch that died is no longer believed once it fails', async () => {
    const answers = new Map<string, unknown>()
    const paid = await request()
    misreporter.meddle(async ({ method, params }, ask) => {
      const answer = await ask()
      answers.set(JSON.stringify([method, params]), answer)
      return answer
    })
    const txHash = await pay(paid)
    await detection.scanOnce()
    await detection.scanOnce()
    expect(await stored(paid)).toEqual([{ amount: '1', txHash, status: 'PENDING' }])

    await chain.reorg(1)
    await chain.mine({ blocks: 2 })
    misreporter.meddle(({ method, params }) => Promise.resolve(answers.get(JSON.stringify([method, params])) ?? null))
    await scanSomehow()
    expect((await stored(paid)).map(({ status }) => status)).toEqual(['PENDING'])
    misreporter.fail(503)
    await detection.scanOnce()
    await detection.scanOnce()
    expect(await stored(paid)).toEqual([])
  })
})
