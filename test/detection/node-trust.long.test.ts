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
let misreporter: RpcProxy
let honest: RpcProxy
let third: RpcProxy
let account: Account
let detection: Detection
let aheadMs = 0
const faults: string[] = []
beforeAll(async () => {
  chain = await startTestChain({ chainId: 31_565 })
  const start = () => startRpcProxy(chain.rpcUrl)
  ;[misreporter, honest, third] = await Promise.all([start(), start(), start()])
})
afterAll(async () => {
  await Promise.all([misreporter, honest, third].map((proxy) => proxy?.stop()))
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
  for (const proxy of [misreporter, honest, third]) proxy.meddle()
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
const unproven = async () => {
  const rows = await knex('unproven_blocks').orderBy(['node', 'state']).select<{ node: string; state: string }[]>()
  return rows.map(({ node, state }) => `${node} ${state}`)
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
    misreporter.meddle(together(omits(omitted), invents(unpaid, await receiptOf(hash))))
    begin([misreporter.url, honest.url])
    await scanSomehow()
    await scan()
    expect([await amountsOf(omitted), await amountsOf(unpaid)]).toEqual([['1'], []])
    expect(suspects()).toEqual([expect.stringMatching(`^${hostOf(misreporter)} it gives other logs of block`)])
    expect(faults).toEqual([`BASE ${hostOf(misreporter)} LOGS`])

    // Used again after 30 s; and after twice as long where it is found out once more.
    aheadMs += 31_000
    await scan()
    expect(suspects()).toEqual([])
    const missed = await request()
    misreporter.meddle(together(omits(omitted), omits(missed)))
    await pay(missed)
    await scan()
    expect([await amountsOf(missed), suspects().length]).toEqual([['1'], 1])
    await chain.mine({ blocks: 4 })
    aheadMs += 31_000
    await scan()
    expect(suspects()).toHaveLength(1)
    aheadMs += 30_000
    await scan()
    expect(suspects()).toEqual([])
  })

  it.each<[string, boolean]>([
    ['by the proof of receipts', true],
    ['not at all where neither can prove its logs', false],
  ])('blocks that were followed are compared, and what was wrong is taken back: %s', async (_, isProvable) => {
    await chain.mine({ blocks: 2 })
    begin([misreporter.url, honest.url], {}, 1)
    await scan()
    const [paid, omitted, unpaid] = [await request(), await request(), await request()]
    const hash = await pay(paid)
    await pay(omitted)
    const lies = isProvable ? [invents(unpaid, await receiptOf(hash))] : [withoutProof]
    misreporter.meddle(together(omits(omitted), misstates(omitted, 2n * COIN), ...lies, withoutBlooms))
    if (!isProvable) honest.meddle(withoutProof)
    await scan()
    const invented = isProvable ? ['1'] : []
    expect([await amountsOf(paid), await amountsOf(omitted), await amountsOf(unpaid)]).toEqual([['1'], [], invented])
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
      misreporter.meddle()
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
    begin([misreporter.url, honest.url], {}, 1)
    await scan()
    const omitted = await request()
    await pay(omitted)
    misreporter.meddle(together(omits(omitted), withoutBlooms))
    await scan()
    misreporter.meddle()
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
    misreporter.meddle(together(omits(omitted), withoutProof, withoutBlooms))
    begin([misreporter.url, honest.url, third.url])
    await scanSomehow()
    expect(await amountsOf(paid)).toEqual([])
    expect(suspects()).toEqual([expect.stringMatching(`^${hostOf(misreporter)} it gives other logs of block`)])
    await scan()
    expect([await amountsOf(paid), await amountsOf(omitted)]).toEqual([['1'], ['1']])
    expect(faults).toEqual([`BASE ${hostOf(misreporter)} LOGS`])
  })

  it('blocks that a killed process followed last are read again from another node', async () => {
    await chain.mine({ blocks: 2 })
    begin([misreporter.url, honest.url], { owner: 'first' })
    await scan()
    const omitted = await request()
    await pay(omitted)
    misreporter.meddle(together(omits(omitted), withoutBlooms))
    await scan()
    expect([await amountsOf(omitted), await unproven()]).toEqual([[], [`${hostOf(misreporter)} FOLLOWED`]])
    await knex('leases').delete()
    await chain.mine({ blocks: 4 })
    misreporter.meddle()
    begin([misreporter.url, honest.url], { owner: 'second' })
    await scan()
    await scan()
    expect(await amountsOf(omitted)).toEqual(['1'])
    expect(await unproven()).toEqual([`${hostOf(misreporter)} FOLLOWED`])
  })
})

it('blocks that a node cannot prove since its head stands still are proven later', async () => {
  begin([misreporter.url, honest.url], { owner: 'first' })
  await scan()
  // The first run is compared at once, the second one not yet.
  for (const blocks of [6, 6]) {
    await chain.mine({ blocks })
    await scan()
  }
  const omitted = await request()
  misreporter.meddle(together(omits(omitted), withoutBlooms))
  await pay(omitted)
  await scan()
  await chain.mine({ blocks: 2 })
  // For this node the payment's block will be the first that is not final.
  const head = await chain.client.rpc.call('eth_getBlockByNumber', ['latest', false])
  await chain.mine()
  await scan()
  expect(await amountsOf(omitted)).toEqual([])
  await knex('leases').delete()
  misreporter.meddle(({ method, params }) =>
    method === 'eth_getBlockByNumber' && params[0] === 'latest' ? Promise.resolve(head) : undefined,
  )
  begin([misreporter.url, honest.url], { owner: 'second' })
  await scanSomehow()
  await scanSomehow()
  misreporter.meddle()
  aheadMs += 31_000
  await scanSomehow()
  await scan()
  expect(await amountsOf(omitted)).toEqual(['1'])
})

it('blocks whose proof ended early, since another process took the chain over, are proven by that one', async () => {
  await chain.mine({ blocks: 2 })
  begin([misreporter.url, honest.url], { owner: 'first' })
  await scan()
  const omitted = await request()
  misreporter.meddle(together(omits(omitted), withoutBlooms))
  await pay(omitted)
  const { hash: blockHash } = await chain.client.head()
  await scan()
  await knex('leases').delete()
  await chain.mine({ blocks: 4 })
  const asked = Promise.withResolvers<void>()
  const hold: Meddle = ({ method, params }) => {
    if (method !== 'eth_getBlockReceipts' || params[0] !== blockHash) return undefined
    asked.resolve()
    return new Promise(() => {})
  }
  for (const proxy of [misreporter, honest]) proxy.meddle(hold)
  begin([misreporter.url, honest.url], { owner: 'second' })
  const scanning = scanSomehow()
  await asked.promise
  await knex('leases').update({ owner: 'third' })
  await scanning
  await detection.stop()
  for (const proxy of [misreporter, honest]) proxy.meddle()
  await knex('leases').delete()
  begin([misreporter.url, honest.url], { owner: 'third' })
  await scanSomehow()
  await scan()
  expect(await amountsOf(omitted)).toEqual(['1'])
})

describe('other blocks of a request whose payment is proven', () => {
  let other: TestChain
  beforeAll(async () => {
    other = await startTestChain({ chainId: 31_566 })
    await other.mine({ blocks: 200 })
  })
  afterAll(() => other?.stop())

  it.each<[string, urls: () => string[], doesAdmit: boolean]>([
    ['a fork of the chain', () => [misreporter.url, honest.url], false],
    ['another chain, and is the only one', () => [misreporter.url], true],
  ])('lose no payment while a node answers from %s', async (_, urls, doesAdmit) => {
    begin(urls())
    const paid = await request()
    await pay(paid)
    await chain.mine({ blocks: 4 })
    await pay(paid)
    const { number, hash } = await chain.client.head()
    await chain.mine({ blocks: 4 })
    await scan()
    const stored = await amountsOf(paid)
    const row = {
      chain_id: 'eip155:31565',
      node: hostOf(honest),
      state: 'UNCOMPARED',
      blocks: `{[${number},${number}]}`,
    }
    await knex('unproven_blocks').insert(row).onConflict(['chain_id', 'node', 'state']).merge()
    // From the proof of the second payment's block on. That of the first one is read after it, since it is of the same request.
    let isElsewhere = false
    misreporter.meddle(({ method, params }) => {
      const wasElsewhere = isElsewhere
      if (method === 'eth_getBlockReceipts' && params[0] === hash) isElsewhere = true
      const isOfBefore = Number(params[0]) < Number(number)
      return wasElsewhere && (isOfBefore || doesAdmit) ? other.client.rpc.call(method, params) : undefined
    })
    aheadMs += 61_000
    await scanSomehow()
    await scanSomehow()
    expect(isElsewhere).toBe(true)
    expect([stored, await amountsOf(paid)]).toEqual([
      ['1', '1'],
      ['1', '1'],
    ])
  })
})

it('blocks that a node gave which was found out count as not read until they are read again', async () => {
  await chain.mine({ blocks: 4 })
  begin([honest.url, third.url])
  await scan()
  const read = await progress()
  const row = { chain_id: 'eip155:31565', node: hostOf(misreporter), state: 'UNCOMPARED', blocks: '{[2,3]}' }
  await knex('unproven_blocks').insert(row)
  expect(await progress()).toEqual(read)
  await knex('unproven_blocks')
    .where({ node: hostOf(misreporter) })
    .update({ state: 'WRONG' })
  expect(await progress()).toMatchObject({ readBlock: 1n, readTime: undefined })
  await scan()
  expect(await progress()).toEqual(read)
})

it('blocks that are read again lose nothing that the only other node leaves out', async () => {
  await chain.mine({ blocks: 2 })
  begin([honest.url, misreporter.url], { owner: 'first' })
  await scan()
  const paid = await request()
  await pay(paid)
  const paidIn = (await chain.client.head()).number
  await scan()
  expect(await amountsOf(paid)).toEqual(['1'])
  await knex('leases').delete()
  await chain.mine({ blocks: 4 })
  misreporter.meddle(together(omits(paid), withoutBlooms))
  begin([honest.url, misreporter.url], { owner: 'second' })
  await scanSomehow()
  await scanSomehow()
  expect(await amountsOf(paid)).toEqual(['1'])
  // The block was proven.
  const left = await knex('unproven_blocks')
    .where({ state: 'UNCOMPARED' })
    .whereRaw('blocks @> ?::bigint', [Number(paidIn)])
  expect(left).toEqual([])
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
    begin([misreporter.url, honest.url])
    await scan()
    await chain.mine()
    await scan()
    const isFollowed = async () => (await unproven()).includes(`${hostOf(misreporter)} FOLLOWED`)
    expect([suspects(), await isFollowed()]).toEqual([[], true])
    misreporter.meddle(lie())
    aheadMs += 61_000
    await scanSomehow()
    expect(suspects()).toEqual([expect.stringMatching(reason)])
    expect(suspects()[0]).toContain(hostOf(misreporter))
    expect(await isFollowed()).toBe(false)
    misreporter.meddle()
    aheadMs += 40_000
    await scan()
    expect(suspects()).toEqual([])
    // What it gives from now on is noted anew.
    await chain.mine()
    await scan()
    expect(await isFollowed()).toBe(true)
  })
})

it('a node whose head stands still is left, so that payments beyond it are found, and taken back when it moves', async () => {
  const { timestampSec } = await chain.client.head()
  await chain.mine({ blocks: 2, timestampSec: timestampSec + 10 })
  begin([misreporter.url, honest.url])
  await scan()
  const head = await chain.client.rpc.call('eth_getBlockByNumber', ['latest', false])
  misreporter.meddle(({ method, params }) =>
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
  expect([suspects()[0]?.split(' ')[0], await amountsOf(paid)]).toEqual([hostOf(misreporter), ['1']])
  expect(faults).toEqual([`BASE ${hostOf(misreporter)} STALE`])
  misreporter.meddle()
  aheadMs += 31_000
  await scan()
  expect(suspects()).toEqual([])
})

describe('of an only node that leaves logs out', () => {
  it('blooms and receipts give the payments that are followed', async () => {
    await chain.mine({ blocks: 2 })
    begin([misreporter.url])
    await scan()
    const omitted = await request()
    misreporter.meddle(omits(omitted))
    await pay(omitted)
    await scan()
    expect(await amountsOf(omitted)).toEqual(['1'])
    expect(suspects()).toEqual([expect.stringMatching(/its logs of block \d+ are not those of the block's receipts/)])
  })

  it('what it gave before is read again from receipts', async () => {
    await chain.mine({ blocks: 2 })
    begin([misreporter.url], {}, 1)
    await scan()
    const [early, late] = [await request(), await request()]
    misreporter.meddle(together(omits(early), withoutBlooms))
    await pay(early)
    await scan()
    expect(await amountsOf(early)).toEqual([])
    misreporter.meddle(together(omits(early), omits(late)))
    await pay(late)
    await scan()
    expect(await amountsOf(late)).toEqual(['1'])
    await chain.mine({ blocks: 4 })
    await scan()
    expect(await amountsOf(early)).toEqual(['1'])
  })
})

describe('an only node', () => {
  const unproven = () => detection.status()[0]?.unproven?.reason

  it('that gives no receipts of blocks cannot be checked: payments stand, and the chain says that it is unproven', async () => {
    await chain.mine({ blocks: 2 })
    misreporter.meddle(withoutProof)
    begin([misreporter.url])
    await scan()
    const paid = await request()
    await pay(paid)
    await scan()
    expect([await amountsOf(paid), suspects()]).toEqual([['1'], []])
    expect(unproven()).toMatch(/^the only node has no eth_getBlockReceipts, so nobody notices what it leaves out/)
    misreporter.meddle()
    aheadMs += 61_000
    await scan()
    expect(unproven()).toBeUndefined()
  })

  it('that empties the blooms of its headers as well is found out by receipts of one block in 50', async () => {
    await chain.mine({ blocks: 2 })
    begin([misreporter.url])
    await scan()
    misreporter.meddle(withoutBlooms)
    for (let block = 0; block < 60; block++) await chain.mine()
    await scan()
    const omitted = await request()
    misreporter.meddle(together(omits(omitted), withoutBlooms))
    for (let times = 0; times < 50 && suspects().length === 0; times++) {
      await pay(omitted)
      await scan()
    }
    expect(suspects()).toEqual([expect.stringMatching(/its logs of block \d+ are not those of the block's receipts/)])
    misreporter.meddle(omits(omitted))
    await chain.mine({ blocks: 4 })
    aheadMs += 31_000
    await scan()
    // What it left out before is proven and counted.
    const payments = await paymentsOf(knex, account, omitted)
    expect(payments.length).toBeGreaterThan(1)
    expect(payments).toHaveLength(
      Number(
        await knex('payments')
          .count()
          .first()
          .then((row) => row?.['count']),
      ),
    )
  })
})

it('follows by itself as well: a lie that began later is repaired while the service runs', async () => {
  await chain.mine({ blocks: 2 })
  begin([misreporter.url, honest.url], { pollIntervalMs: 20 }, 1).start()
  const omitted = await request()
  await expect.poll(() => detection.status()[0]?.scanned, PATIENCE).toBeDefined()
  misreporter.meddle(omits(omitted, false))
  await pay(omitted)
  await chain.mine({ blocks: 4 })
  await expect.poll(() => amountsOf(omitted), PATIENCE).toEqual(['1'])
})
