/** Nodes that answer wrongly, before a real chain: they are found out, left, and what they gave is taken back. */
import type { Knex } from 'knex'
import { keccak256 } from 'viem'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Detection, DetectionOptions } from '../../src/detection/detection.ts'
import type { Account } from '../../src/domain/account.ts'
import type { Hex } from '../../src/domain/hex.ts'
import type { PaymentRequest } from '../../src/domain/payment-request.ts'
import { runNamed } from '../../src/postgres/named-statements.ts'
import { chainProgressOf, chainProgressStatement } from '../../src/search/sql/chain-progress.ts'
import { startTestChain, type TestChain } from '../support/chains/chain.ts'
import {
  invents,
  misstates,
  omits,
  type Receipt,
  together,
  withoutBlooms,
  withoutProof,
} from '../support/chains/lies.ts'
import { type Meddle, type RpcProxy, startRpcProxy } from '../support/chains/rpc-proxy.ts'
import { createTestDatabase, type TestDatabase } from '../support/data/database.ts'
import { addAccount, canonical, configOf, detect, makeRequest, paymentsOf, storeRequest } from '../support/detection.ts'
import { silentLogger } from '../support/logs.ts'

const COIN = 10n ** 18n
const PATIENCE = { interval: 20, timeout: 10_000 }

let database: TestDatabase
let knex: Knex
let chain: TestChain
let liar: RpcProxy
let honest: RpcProxy
let third: RpcProxy
let account: Account
let detection: Detection
let aheadMs = 0
const faults: string[] = []
beforeAll(async () => {
  chain = await startTestChain({ chainId: 31_565 })
  const start = () => startRpcProxy(chain.rpcUrl)
  ;[liar, honest, third] = await Promise.all([start(), start(), start()])
})
afterAll(async () => {
  await Promise.all([liar, honest, third].map((proxy) => proxy?.stop()))
  await chain?.stop()
})
beforeEach(async () => {
  database = await createTestDatabase()
  knex = database.knex
  account = await addAccount(knex, 'shop')
  aheadMs = 0
  faults.length = 0
})
afterEach(async () => {
  for (const proxy of [liar, honest, third]) proxy.meddle()
  honest.fail()
  await detection?.stop()
  await database?.drop()
})

function begin(urls: readonly string[], options: Partial<DetectionOptions> = {}, sampleLogs = 50): Detection {
  const config = { ...configOf(chain, 'BASE', { rpcUrls: urls }), sampleLogs, startBlock: 0 }
  const noteFault = ({ chain: network, node, fault }: { chain?: string; node?: string; fault?: string }) => {
    if (fault !== undefined) faults.push(`${network} ${node} ${fault}`)
  }
  detection = detect(knex, [config], {
    clock: () => new Date(Date.now() + aheadMs),
    checkNodesEveryMs: 60_000,
    suspectMs: 1_000,
    logger: { ...silentLogger, warn: noteFault, error: noteFault },
    ...options,
  })
  return detection
}
let requests = 0
async function request(): Promise<PaymentRequest> {
  const payee = canonical(`0x${keccak256(new TextEncoder().encode(`trust ${requests++}`)).slice(-40)}`)
  return storeRequest(knex, account, makeRequest({ payee, network: 'BASE', paymentCurrency: 'ETH-BASE', amount: '1' }))
}
async function pay({ payee, paymentReference }: PaymentRequest): Promise<Hex> {
  const payment = { kind: 'NATIVE', to: payee as Hex, amount: COIN, paymentReference } as const
  return (await chain.pay(chain.wallets[0], payment)).transactionHash
}
const amountsOf = async (wanted: PaymentRequest) =>
  (await paymentsOf(knex, account, wanted)).map(({ amount }) => amount)
async function progress() {
  const [rows = []] = await runNamed(knex, [chainProgressStatement], undefined)
  return rows.map(chainProgressOf)[0]
}
const suspects = () => detection.status()[0]?.suspects.map(({ node, reason }) => `${node} ${reason}`) ?? []
const scan = () => detection.scanOnce()
const scanSomehow = () => detection.scanOnce().catch(() => {})
const hostOf = ({ url }: RpcProxy) => new URL(url).host
const receiptOf = (hash: Hex) => chain.client.rpc.call('eth_getTransactionReceipt', [hash]) as Promise<Receipt>

describe('of a node that answers wrongly, before one that does not,', () => {
  it('the first range is compared, so that nothing wrong is stored', async () => {
    const [omitted, unpaid] = [await request(), await request()]
    const hash = await pay(omitted)
    await chain.mine({ blocks: 4 })
    liar.meddle(together(omits(omitted), invents(unpaid, await receiptOf(hash))))
    begin([liar.url, honest.url])
    await scanSomehow()
    await scan()
    expect([await amountsOf(omitted), await amountsOf(unpaid)]).toEqual([['1'], []])
    expect(suspects()).toEqual([expect.stringMatching(`^${hostOf(liar)} it gives other logs of block`)])
    expect(faults).toEqual([`BASE ${hostOf(liar)} LOGS`])

    // Taken back into use when it passes the check that it failed.
    aheadMs += 1_500
    await scan()
    expect(suspects()).toHaveLength(1)
    liar.meddle()
    aheadMs += 2_500
    await scan()
    expect(suspects()).toEqual([])
    const before = liar.exchanges()
    await scan()
    expect(liar.exchanges()).toBeGreaterThan(before)
  })

  it.each<[string, boolean]>([
    ['by the proof of receipts', true],
    ['not at all where neither can prove its logs', false],
  ])('blocks that were followed are compared, and what was wrong is taken back: %s', async (_, isProvable) => {
    await chain.mine({ blocks: 2 })
    begin([liar.url, honest.url], {}, 1)
    await scan()
    const [paid, omitted, unpaid] = [await request(), await request(), await request()]
    const hash = await pay(paid)
    await pay(omitted)
    const lie = together(omits(omitted), invents(unpaid, await receiptOf(hash)), misstates(omitted, COIN))
    liar.meddle(together(lie, ...(isProvable ? [] : [withoutProof]), withoutBlooms))
    if (!isProvable) honest.meddle(withoutProof)
    await scan()
    expect([await amountsOf(paid), await amountsOf(omitted), await amountsOf(unpaid)]).toEqual([['1'], [], ['1']])
    await chain.mine({ blocks: 4 })
    await scanSomehow()
    await scanSomehow()
    if (isProvable) {
      await scan()
      expect([await amountsOf(paid), await amountsOf(omitted), await amountsOf(unpaid)]).toEqual([['1'], ['1'], []])
      expect(await knex('audit_log').where({ action: 'VERIFY_REPAIR', actor: 'service' })).not.toEqual([])
    } else {
      expect(suspects()).toEqual([
        expect.stringMatching(/neither can prove its own/),
        expect.stringMatching(/neither can prove its own/),
      ])
      await chain.mine()
      await expect(scan()).rejects.toThrow(/only nodes that have answered wrongly can be reached/)
      // Once they agree, what is right is read.
      liar.meddle()
      aheadMs += 40_000
      await scanSomehow()
      expect(suspects()).toEqual([])
      await scan()
      expect(suspects()).toEqual([])
      expect([await amountsOf(paid), await amountsOf(omitted), await amountsOf(unpaid)]).toEqual([['1'], ['1'], []])
    }
  })

  it('blocks that were followed while no other node answered are compared when one does', async () => {
    await chain.mine({ blocks: 2 })
    begin([liar.url, honest.url], {}, 1)
    await scan()
    const omitted = await request()
    await pay(omitted)
    liar.meddle(together(omits(omitted), withoutBlooms))
    await scan()
    liar.meddle()
    honest.fail(503)
    await chain.mine({ blocks: 4 })
    await scan()
    honest.fail()
    aheadMs += 40_000
    await chain.mine({ blocks: 4 })
    for (let times = 0; times < 3; times++) await scanSomehow()
    expect(await amountsOf(omitted)).toEqual(['1'])
  })

  it('a third node decides where neither of two can prove its logs', async () => {
    const [paid, omitted] = [await request(), await request()]
    await pay(paid)
    await pay(omitted)
    await chain.mine({ blocks: 4 })
    for (const proxy of [honest, third]) proxy.meddle(withoutProof)
    liar.meddle(together(omits(omitted), withoutProof, withoutBlooms))
    begin([liar.url, honest.url, third.url])
    await scanSomehow()
    expect(await amountsOf(paid)).toEqual([])
    expect(suspects()).toEqual([expect.stringMatching(`^${hostOf(liar)} it gives other logs of block`)])
    await scan()
    expect([await amountsOf(paid), await amountsOf(omitted)]).toEqual([['1'], ['1']])
    expect(faults).toEqual([`BASE ${hostOf(liar)} LOGS`])
  })

  it('blocks that a killed process followed last are read again from another node', async () => {
    await chain.mine({ blocks: 2 })
    begin([liar.url, honest.url], { owner: 'first' })
    await scan()
    const omitted = await request()
    await pay(omitted)
    liar.meddle(omits(omitted, false))
    await scan()
    expect(await amountsOf(omitted)).toEqual([])
    expect(await knex('node_readings').where({ node: hostOf(liar), lane: 'FOLLOW' })).toHaveLength(1)
    await knex('leases').delete()
    await chain.mine({ blocks: 4 })
    liar.meddle()
    begin([liar.url, honest.url], { owner: 'second' })
    await scan()
    await scan()
    expect(await amountsOf(omitted)).toEqual(['1'])
    expect(await knex('node_readings').where({ node: hostOf(liar) })).toHaveLength(1)
  })
})

it('blocks that a node gave which was found out count as not read until they are read again', async () => {
  await chain.mine({ blocks: 4 })
  begin([honest.url, third.url])
  await scan()
  const read = await progress()
  const row = { chain_id: 'eip155:31565', node: hostOf(liar), from_block: 2, to_block: 3 }
  await knex('pending_rereads').insert({ ...row, is_wrong: false })
  expect(await progress()).toEqual(read)
  await knex('pending_rereads').update({ is_wrong: true })
  expect(await progress()).toMatchObject({ readBlock: 1n, readTime: undefined })
  await scan()
  expect(await progress()).toEqual(read)
})

it('blocks that are read again lose nothing that the only other node leaves out', async () => {
  await chain.mine({ blocks: 2 })
  begin([honest.url, liar.url], { owner: 'first' })
  await scan()
  const paid = await request()
  await pay(paid)
  const paidIn = (await chain.client.head()).number
  await scan()
  expect(await amountsOf(paid)).toEqual(['1'])
  await knex('leases').delete()
  await chain.mine({ blocks: 4 })
  liar.meddle(together(omits(paid), withoutBlooms))
  begin([honest.url, liar.url], { owner: 'second' })
  await scanSomehow()
  await scanSomehow()
  expect(await amountsOf(paid)).toEqual(['1'])
  // The block was read again.
  const left = await knex('pending_rereads').where('from_block', '<=', Number(paidIn))
  expect([await knex('pending_rereads').where({ node: hostOf(honest) }), left]).toEqual([[expect.anything()], []])
})

describe('the heads of all nodes are compared:', () => {
  it.each<[string, () => Meddle, RegExp]>([
    [
      'one whose chain was swapped',
      () =>
        ({ method }) =>
          method === 'eth_chainId' ? Promise.resolve('0x1') : undefined,
      /it serves chain 1, not 31565/,
    ],
    [
      'one on another branch',
      () =>
        ({ method, params }, ask) =>
          method === 'eth_getBlockByNumber' && params[0] !== 'latest'
            ? ask().then((block) => block && { ...block, hash: `0x${'77'.repeat(32)}` })
            : undefined,
      /its block \d+ is 0x77/,
    ],
  ])('%s is left, and taken back later', async (_, lie, reason) => {
    await chain.mine({ blocks: 20, timestampSec: Math.floor(Date.now() / 1_000) + 30 + requests++ })
    begin([liar.url, honest.url])
    await scan()
    await chain.mine()
    await scan()
    const readings = async () => (await knex('node_readings').where({ node: hostOf(liar), lane: 'FOLLOW' })).length
    expect([suspects(), await readings()]).toEqual([[], 1])
    liar.meddle(lie())
    aheadMs += 61_000
    await scanSomehow()
    expect(suspects()).toEqual([expect.stringMatching(reason)])
    expect(suspects()[0]).toContain(hostOf(liar))
    expect(await readings()).toBe(0)
    liar.meddle()
    aheadMs += 40_000
    await scan()
    expect(suspects()).toEqual([])
    // What it gives from now on is noted anew.
    await chain.mine()
    await scan()
    expect(await readings()).toBe(1)
  })
})

it('a node whose head stands still is left, so that payments beyond it are found, and taken back when it moves', async () => {
  const { timestampSec } = await chain.client.head()
  await chain.mine({ blocks: 2, timestampSec: timestampSec + 10 })
  begin([liar.url, honest.url])
  await scan()
  const head = await chain.client.rpc.call('eth_getBlockByNumber', ['latest', false])
  liar.meddle(({ method, params }) =>
    method === 'eth_getBlockByNumber' && params[0] === 'latest' ? Promise.resolve(head) : undefined,
  )
  const paid = await request()
  await pay(paid)
  await chain.mine({ blocks: 12, timestampSec: timestampSec + 100 })
  await scan()
  expect([suspects(), await amountsOf(paid)]).toEqual([[], []])
  aheadMs += 61_000
  await scan()
  await scan()
  expect(suspects()).toEqual([expect.stringMatching(/^\S+ its head \d+ is 13 blocks behind that of another node$/)])
  expect([suspects()[0]?.split(' ')[0], await amountsOf(paid)]).toEqual([hostOf(liar), ['1']])
  expect(faults).toEqual([`BASE ${hostOf(liar)} STALE`])
  liar.meddle()
  aheadMs += 2_000
  await scan()
  expect(suspects()).toEqual([])
})

describe('of an only node that leaves logs out', () => {
  it('blooms and receipts give the payments that are followed', async () => {
    await chain.mine({ blocks: 2 })
    begin([liar.url])
    await scan()
    const omitted = await request()
    liar.meddle(omits(omitted))
    await pay(omitted)
    await scan()
    expect(await amountsOf(omitted)).toEqual(['1'])
    expect(suspects()).toEqual([expect.stringMatching(/it leaves out logs of block \d+, which its receipts have/)])
  })

  it('what it gave before is read again from receipts', async () => {
    await chain.mine({ blocks: 2 })
    begin([liar.url], {}, 1)
    await scan()
    const [early, late] = [await request(), await request()]
    liar.meddle(together(omits(early), withoutBlooms))
    await pay(early)
    await scan()
    expect(await amountsOf(early)).toEqual([])
    liar.meddle(together(omits(early), omits(late)))
    await pay(late)
    await scan()
    expect(await amountsOf(late)).toEqual(['1'])
    await chain.mine({ blocks: 4 })
    await scan()
    expect(await amountsOf(early)).toEqual(['1'])
  })
})

it('follows by itself as well: a lie that began later is repaired while the service runs', async () => {
  await chain.mine({ blocks: 2 })
  begin([liar.url, honest.url], { pollIntervalMs: 20 }, 1).start()
  const omitted = await request()
  await expect.poll(() => detection.status()[0]?.scanned, PATIENCE).toBeDefined()
  liar.meddle(omits(omitted, false))
  await pay(omitted)
  await chain.mine({ blocks: 4 })
  await expect.poll(() => amountsOf(omitted), PATIENCE).toEqual(['1'])
})
