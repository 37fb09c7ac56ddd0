import type { Knex } from 'knex'
import { keccak256 } from 'viem'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Detection } from '../../src/detection/detection.ts'
import type { Account } from '../../src/domain/account.ts'
import type { Address } from '../../src/domain/address.ts'
import { paymentReferenceOf } from '../../src/domain/identifiers.ts'
import type { Logger } from '../../src/domain/logger.ts'
import type { PaymentRequest } from '../../src/domain/payment-request.ts'
import { createDatabase } from '../../src/postgres/knex.ts'
import { startTestChain, type TestChain } from '../support/chains/chain.ts'
import { type RpcProxy, startRpcProxy } from '../support/chains/rpc-proxy.ts'
import { createTestDatabase, type TestDatabase } from '../support/data/database.ts'
import {
  addAccount,
  balanceOf,
  canonical,
  configOf,
  detect,
  makeRequest,
  paymentsOf,
  storeRequest,
  type TestTerms,
  unmatchedOf,
} from '../support/detection.ts'

let chain: TestChain
let proxy: RpcProxy
let database: TestDatabase
let knex: Knex
let detection: Detection
let account: Account
let payer: `0x${string}`

beforeAll(async () => {
  chain = await startTestChain({ chainId: 31_421, automine: false })
  proxy = await startRpcProxy(chain.rpcUrl)
  payer = chain.wallets[0]
  await chain.fund(chain.tokens.USDC, payer, 1_000_000_000000n)
  for (const spender of [payer, chain.wallets[2]]) {
    await chain.approve(spender, chain.tokens.USDC, chain.contracts.erc20FeeProxy, 2n ** 255n)
  }
})
afterAll(async () => {
  await proxy?.stop()
  await chain?.stop()
})
beforeEach(async () => {
  database = await createTestDatabase()
  knex = database.knex
  account = await addAccount(knex, 'shop')
  detection = detect(knex, [followed()])
})
afterEach(async () => {
  proxy.meddle()
  proxy.fail()
  await detection.stop()
  await database.drop()
})

const followed = (options = {}) => configOf(chain, 'BASE', { rpcUrls: [proxy.url], ...options })
const scan = () => detection.scanOnce()

let seeds = 0
function freshAddress(): Address {
  seeds++
  return canonical(`0x${keccak256(new TextEncoder().encode(`payee ${seeds}`)).slice(-40)}`)
}

function newRequest(terms: TestTerms = {}): PaymentRequest {
  return makeRequest({ payee: freshAddress(), network: 'BASE', ...terms })
}

/** Sends a payment in USDC that waits for the next block. Amount in whole dollars. */
async function send(request: PaymentRequest, dollars: number, options: { to?: string; from?: `0x${string}` } = {}) {
  const { transactionHash } = await chain.pay(options.from ?? payer, {
    kind: 'ERC20',
    token: chain.tokens.USDC.address,
    to: (options.to ?? request.payee) as `0x${string}`,
    amount: BigInt(dollars) * 1_000_000n,
    paymentReference: request.paymentReference,
  })
  return transactionHash
}

async function statuses(request: PaymentRequest): Promise<string[]> {
  return (await paymentsOf(knex, account, request)).map(({ status }) => status)
}

/** Everything that detection stored, in a comparable form, without times of writing. */
async function snapshot() {
  const payments = await knex('payments').orderBy(['account_id', 'id'])
  const refunds = await knex('refunds').orderBy(['account_id', 'tx_hash', 'event_index'])
  const unmatched = await knex('unmatched_events').orderBy(['tx_hash', 'event_index', 'account_id'])
  const untimed = { updated_at: undefined, changed_at: undefined, status_history: undefined, confirmations: undefined }
  return { payments: payments.map((row) => ({ ...row, ...untimed })), refunds, unmatched }
}

describe('finality', () => {
  it('makes all payments of a request CONFIRMED at once when the final ones cover it', async () => {
    const request = await storeRequest(knex, account, newRequest())
    await send(request, 60)
    await chain.mine()
    await scan()
    expect(await statuses(request)).toEqual(['PENDING'])
    await chain.mine({ blocks: 3 })
    await scan()
    expect(await statuses(request)).toEqual(['PARTIAL'])
    expect(await balanceOf(knex, account, request)).toMatchObject({ status: 'PARTIALLY_PAID', outstandingAmount: '40' })
    await send(request, 40)
    await chain.mine()
    await scan()
    expect(await statuses(request)).toEqual(['PARTIAL', 'PENDING'])
    expect(await balanceOf(knex, account, request)).toMatchObject({ status: 'PENDING', outstandingAmount: '0' })
    await chain.mine({ blocks: 3 })
    await scan()
    const payments = await paymentsOf(knex, account, request)
    expect(payments.map(({ status, final, confirmations }) => ({ status, final, confirmations }))).toEqual([
      { status: 'CONFIRMED', final: true, confirmations: 4 },
      { status: 'CONFIRMED', final: true, confirmations: 4 },
    ])
    expect(payments[0].updated_at).toEqual(payments[1].updated_at)
    const history = payments[0].status_history.map(({ status }: { status: string }) => status)
    expect(history).toEqual(['PENDING', 'PARTIAL', 'CONFIRMED'])
    expect((await balanceOf(knex, account, request)).status).toBe('PAID')
  })

  it('moves updatedAt only when something changed', async () => {
    const request = await storeRequest(knex, account, newRequest())
    await send(request, 60)
    await chain.mine()
    await scan()
    const [before] = await paymentsOf(knex, account, request)
    await chain.mine()
    await scan()
    const [after] = await paymentsOf(knex, account, request)
    expect(after.updated_at).toEqual(before.updated_at)
  })

  it('is the node’s finalized block where it has one, and is never taken back', async () => {
    let nowMs = 0
    const config = followed({ finality: { useFinalizedTag: true, depth: 3 } })
    detection = detect(knex, [config], { clock: () => new Date(nowMs) })
    const request = await storeRequest(knex, account, newRequest())
    await send(request, 100)
    const number = await chain.mine()
    const pin = (finalized: bigint | null) =>
      proxy.meddle((call, ask) => {
        if (call.params[0] !== 'finalized') return undefined
        return finalized === null ? Promise.resolve(null) : ask().then(() => headerAt(finalized))
      })
    const headerAt = (block: bigint) =>
      chain.client.rpc.call('eth_getBlockByNumber', [`0x${block.toString(16)}`, false])
    pin(number - 1n)
    await chain.mine({ blocks: 10 })
    await scan()
    expect(await statuses(request)).toEqual(['PENDING'])
    pin(number)
    await scan()
    expect(await statuses(request)).toEqual(['CONFIRMED'])
    pin(number - 5n)
    await scan()
    expect(await statuses(request)).toEqual(['CONFIRMED'])
    expect(detection.status()[0]?.final).toBe(Number(number))
    pin(null)
    await chain.mine()
    await scan()
    expect(detection.status()[0]?.final).toBe(Number(number))
    nowMs += 600_000
    await scan()
    expect(detection.status()[0]?.final).toBe(Number(number) + 8)
  })

  it('counts an overpayment and shows it', async () => {
    const request = await storeRequest(knex, account, newRequest())
    await send(request, 150)
    await chain.mine({ blocks: 4 })
    await scan()
    expect(await statuses(request)).toEqual(['CONFIRMED'])
    expect(await balanceOf(knex, account, request)).toMatchObject({ status: 'PAID', overpaidAmount: '50' })
  })
})

describe('refunds', () => {
  it('under the reference of the refund address return a payment, overpaid or not', async () => {
    const refundAddress = freshAddress()
    const merchant = canonical(chain.wallets[2])
    const request = await storeRequest(knex, account, newRequest({ payee: merchant, refundAddress }))
    await send(request, 150)
    await chain.mine({ blocks: 4 })
    const paymentReference = paymentReferenceOf(request.requestId, request.salt, refundAddress)
    const back = async (dollars: number) => {
      await send({ ...request, paymentReference }, dollars, { to: refundAddress, from: chain.wallets[2] })
      await chain.mine({ blocks: 4 })
      await scan()
    }
    await back(50)
    expect(await statuses(request)).toEqual(['CONFIRMED'])
    const first = { amount: '50', recipient: refundAddress }
    expect(await paymentsOf(knex, account, request)).toMatchObject([{ refunds: [first], refunded_amount: '50' }])
    expect(await balanceOf(knex, account, request)).toMatchObject({ status: 'PAID', overpaidAmount: '0' })
    await back(60)
    expect(await paymentsOf(knex, account, request)).toMatchObject([{ status: 'CONFIRMED', refunded_amount: '110' }])
    await chain.fund(chain.tokens.USDC, chain.wallets[2], 5_000000n)
    await back(45)
    const [payment] = await paymentsOf(knex, account, request)
    const refunds = [first, { amount: '60' }, { amount: '40' }, { amount: '5', excess: true }]
    expect(payment).toMatchObject({ status: 'REFUNDED', refunds, refunded_amount: '155' })
    expect(await balanceOf(knex, account, request)).toMatchObject({ status: 'REFUNDED', outstandingAmount: '0' })
  })

  it('under the request’s own reference go from the payee to a payer', async () => {
    const request = await storeRequest(knex, account, newRequest({ payee: canonical(chain.wallets[2]) }))
    await send(request, 30)
    await chain.mine()
    await send(request, 70)
    await chain.mine()
    await send(request, 70, { to: payer, from: chain.wallets[2] })
    await chain.mine()
    await scan()
    expect(await statuses(request)).toEqual(['PENDING', 'PENDING'])
    await chain.mine({ blocks: 3 })
    await scan()
    const payments = await paymentsOf(knex, account, request)
    expect(payments.map(({ status, refunded_amount }) => [status, refunded_amount])).toEqual([
      ['CONFIRMED', '0'],
      ['REFUNDED', '70'],
    ])
    expect((await balanceOf(knex, account, request)).outstandingAmount).toBe('0')
    expect(await unmatchedOf(knex, account.id)).toEqual([])
  })

  it('are not payments between strangers under the reference', async () => {
    const request = await storeRequest(knex, account, newRequest())
    await send(request, 100)
    await chain.mine()
    await send(request, 100, { to: payer })
    await chain.mine({ blocks: 4 })
    await scan()
    expect(await statuses(request)).toEqual(['CONFIRMED'])
    expect(await unmatchedOf(knex, account.id)).toEqual(['WRONG_PAYEE'])
  })
})

describe('reorgs', () => {
  it('remove a payment, and one that is mined again comes back with its id', async () => {
    const request = await storeRequest(knex, account, newRequest())
    await send(request, 60)
    await chain.mine({ blocks: 4 })
    const kept = await send(request, 40)
    await chain.mine()
    const dropped = await send(request, 5)
    await chain.mine()
    await scan()
    const before = await paymentsOf(knex, account, request)
    expect(before.map(({ amount }) => amount)).toEqual(['60', '40', '5'])
    const original = before.find(({ txHash }) => txHash === kept)
    await chain.reorg(2, [{ hash: kept, offset: 1 }])
    await scan()
    const after = await paymentsOf(knex, account, request)
    expect(after.map(({ amount }) => amount)).toEqual(['60', '40'])
    expect(after.find(({ txHash }) => txHash === dropped)).toBeUndefined()
    const again = after.find(({ txHash }) => txHash === kept)
    expect(again.id).toBe(original.id)
    expect(again.block_number).toBe(original.block_number + 1n)
    await chain.mine({ blocks: 4 })
    await scan()
    expect(await statuses(request)).toEqual(['CONFIRMED', 'CONFIRMED'])
  })

  it('remove a refund and settle its request again', async () => {
    const request = await storeRequest(knex, account, newRequest({ payee: canonical(chain.wallets[2]) }))
    await send(request, 100)
    await chain.mine({ blocks: 4 })
    await send(request, 100, { to: payer, from: chain.wallets[2] })
    await chain.mine()
    await scan()
    expect(await paymentsOf(knex, account, request)).toMatchObject([{ status: 'CONFIRMED', refunded_amount: '100' }])
    await chain.reorg(1)
    await chain.mine()
    await scan()
    expect(await paymentsOf(knex, account, request)).toMatchObject([
      { status: 'CONFIRMED', refunded_amount: '0', refunds: [] },
    ])
    expect(await knex('refunds')).toEqual([])
  })

  it('of final blocks stop the chain with an alarm and change nothing', async () => {
    const request = await storeRequest(knex, account, newRequest())
    await send(request, 100)
    await chain.mine({ blocks: 5 })
    await scan()
    expect(await statuses(request)).toEqual(['CONFIRMED'])
    const errors: string[] = []
    const logger: Logger = { debug() {}, info() {}, warn() {}, error: (_, message) => void errors.push(message) }
    let nowMs = 0
    detection = detect(knex, [followed()], { logger, owner: 'second', clock: () => new Date(nowMs) })
    await knex('leases').delete()
    await chain.reorg(6)
    await scan()
    expect(detection.status()[0]?.alarm).toMatch(/was final with hash/)
    expect(errors).toHaveLength(1)
    expect(await statuses(request)).toEqual(['CONFIRMED'])
    await scan()
    expect(errors).toHaveLength(1)
    nowMs += 60_000
    await scan()
    expect(errors).toHaveLength(2)
    expect((await knex('chain_state').first()).alarm).toMatch(/was final/)
    await detection.restartFrom('BASE', 2)
    await scan()
    expect(detection.status()[0]?.alarm).toBeUndefined()
    expect(await statuses(request)).toEqual([])
    expect((await balanceOf(knex, account, request)).status).toBe('OPEN')
  })

  it('are noticed when a node answers no logs for a block that was replaced meanwhile', async () => {
    await scan()
    const request = await storeRequest(knex, account, newRequest())
    const hash = await send(request, 100)
    await chain.mine()
    let lied = 0
    proxy.meddle((call) => {
      if (call.method !== 'eth_getLogs' || lied > 0) return undefined
      const [filter] = call.params as [{ blockHash?: string }]
      if (filter.blockHash === undefined) return undefined
      lied++
      return chain.reorg(1, [{ hash }]).then(() => [])
    })
    await scan()
    expect(lied).toBe(1)
    expect(await statuses(request)).toEqual(['PENDING'])
  })

  it('are not assumed when a node is merely behind', async () => {
    const request = await storeRequest(knex, account, newRequest())
    await send(request, 100)
    const number = await chain.mine()
    await scan()
    const behind = `0x${(number - 1n).toString(16)}`
    proxy.meddle(({ method, params }) => {
      if (method !== 'eth_getBlockByNumber') return undefined
      if (params[0] === 'latest') return chain.client.rpc.call('eth_getBlockByNumber', [behind, false])
      return BigInt(params[0] as string) >= number ? Promise.resolve(null) : undefined
    })
    await scan()
    expect(await statuses(request)).toEqual(['PENDING'])
    proxy.meddle()
    await chain.mine()
    await scan()
    expect(await statuses(request)).toEqual(['PENDING'])
  })
})

describe('restarts and failures', () => {
  it('find the same by a back-fill as by following, and nothing twice', async () => {
    const requests = await Promise.all(
      ['100', '50', '25'].map((amount) => storeRequest(knex, account, newRequest({ amount }))),
    )
    await scan()
    for (const request of requests) {
      await send(request, 40)
      await chain.mine()
      await scan()
    }
    await chain.mine({ blocks: 4 })
    await scan()
    const followedOnce = await snapshot()
    expect(followedOnce.payments).toHaveLength(3)
    for (const table of ['payments', 'refunds', 'unmatched_events', 'chain_state', 'chain_blocks']) {
      await knex(table).delete()
    }
    const again = detect(knex, [followed()], { owner: 'second' })
    await knex('leases').delete()
    await again.scanOnce()
    expect(await snapshot()).toEqual(followedOnce)
    await knex('chain_state').update({
      scanned_block: 0,
      scanned_hash: (await knex('chain_state').first()).genesis_hash,
    })
    await knex('chain_blocks').delete()
    await knex('leases').delete()
    await detect(knex, [followed()], { owner: 'third' }).scanOnce()
    expect(await snapshot()).toEqual(followedOnce)
  })

  it('go on where a process died in the middle of a batch', async () => {
    await scan()
    const request = await storeRequest(knex, account, newRequest())
    await send(request, 100)
    await chain.mine()
    await knex.raw('alter table chain_blocks rename to chain_blocks_gone')
    await expect(scan()).rejects.toThrow(/chain_blocks/)
    await knex.raw('alter table chain_blocks_gone rename to chain_blocks')
    expect(await paymentsOf(knex, account, request)).toEqual([])
    await knex.raw(`alter table chain_state add constraint stop check (scanned_block < 0) not valid`)
    await expect(scan()).rejects.toThrow(/stop/)
    expect(await paymentsOf(knex, account, request)).toEqual([])
    await knex.raw('alter table chain_state drop constraint stop')
    await scan()
    expect(await statuses(request)).toEqual(['PENDING'])
  })

  it('leave a chain to the process that follows it, until that process is gone', async () => {
    await scan()
    const second = detect(knex, [followed()], { owner: 'second' })
    await expect(second.scanOnce()).rejects.toThrow(/another process/)
    await knex('leases').update({ expires_at: new Date(0) })
    await second.scanOnce()
    await chain.mine()
    await expect(scan()).rejects.toThrow(/another process/)
  })

  it('match what the process before left unmatched when it died, as soon as another takes the chain over', async () => {
    await scan()
    await knex('leases').update({ expires_at: new Date(0) })
    const first = detect(knex, [followed()], { owner: 'first' })
    const request = newRequest()
    await send(request, 100)
    await chain.mine()
    await first.scanOnce()
    await storeRequest(knex, account, request)
    // As if the event had been stored just after the request's earlier events were looked for.
    await knex('pending_replays').delete()
    await knex('leases').update({ expires_at: new Date(0) })
    await scan()
    expect(await statuses(request)).toEqual(['PENDING'])
  })

  it('write nothing after another process took the chain over', async () => {
    await scan()
    const request = await storeRequest(knex, account, newRequest())
    await send(request, 100)
    await chain.mine()
    proxy.meddle(({ method }) => {
      if (method !== 'eth_getLogs') return undefined
      return knex('leases')
        .update({ owner: 'somebody else' })
        .then(() => chain.client.rpc.call('eth_getLogs', [{}]))
        .then(() => [])
    })
    await expect(scan()).rejects.toThrow(/no longer holds the lease/)
    expect((await knex('chain_state').first()).scanned_block).toBe((await chain.client.head()).number - 1n)
  })

  it('survive an outage of one chain, which is logged once, while other chains go on', async () => {
    const other = await startTestChain({ chainId: 31_422 })
    const said: string[] = []
    const note = (_: object, message: string) => void said.push(message)
    const logger: Logger = { debug() {}, info: note, warn: note, error: note }
    const configs = [followed(), configOf(other, 'POLYGON')]
    detection = detect(knex, configs, { logger, pollIntervalMs: 20, owner: 'third' })
    proxy.fail(503)
    detection.start()
    await until(() => detection.status().map(({ reachable }) => reachable), [false, true])
    await until(() => detection.status()[1]?.scanned !== undefined, true)
    proxy.fail()
    const request = await storeRequest(knex, account, newRequest())
    await send(request, 100)
    await chain.mine()
    await until(() => statuses(request), ['PENDING'])
    await detection.stop()
    await other.stop()
    const troubles = said.filter((message) => message !== 'this process follows the chain now')
    expect(troubles).toEqual(['the chain does not answer; it is tried again', 'the chain answers again'])
  })

  it('make ranges of logs smaller when the node refuses them as too large', async () => {
    const request = await storeRequest(knex, account, newRequest())
    await send(request, 100)
    await chain.mine({ blocks: 40 })
    const ranges: number[] = []
    proxy.meddle(({ method, params }) => {
      if (method !== 'eth_getLogs') return undefined
      const [{ fromBlock, toBlock }] = params as [{ fromBlock?: string; toBlock?: string }]
      if (fromBlock === undefined) return undefined
      const blocks = Number(toBlock) - Number(fromBlock) + 1
      ranges.push(blocks)
      const rpcError = { code: -32602, message: 'query exceeds max block range 10' }
      return blocks > 10 ? Promise.resolve({ rpcError }) : undefined
    })
    await scan()
    expect(ranges.some((blocks) => blocks > 10)).toBe(true)
    expect(await statuses(request)).toEqual(['CONFIRMED'])
  })

  it('include a node that refuses batches', async () => {
    proxy.refuseBatches(true)
    const request = await storeRequest(knex, account, newRequest())
    await send(request, 100)
    await chain.mine()
    await scan()
    proxy.refuseBatches(false)
    expect(await statuses(request)).toEqual(['PENDING'])
  })
})

describe('requests that are stored after they were paid', () => {
  it('get payments that were found before, pending or final', async () => {
    const early = newRequest()
    await send(early, 100)
    await chain.mine({ blocks: 5 })
    const late = newRequest()
    await send(late, 100)
    await chain.mine()
    await scan()
    expect(await unmatchedOf(knex, 0)).toContain('UNKNOWN_TOPIC')
    const before = (await unmatchedOf(knex, 0)).length
    for (const request of [early, late]) {
      await storeRequest(knex, account, request)
      await detection.onRequestsStored(account, [request])
      await detection.onRequestsStored(account, [request])
    }
    expect(await statuses(early)).toEqual(['CONFIRMED'])
    expect(await statuses(late)).toEqual(['PENDING'])
    expect(await unmatchedOf(knex, 0)).toHaveLength(before - 2)
    await chain.mine({ blocks: 4 })
    await scan()
    expect(await statuses(late)).toEqual(['CONFIRMED'])
  })

  it('lose an attached payment when its block is replaced', async () => {
    const request = newRequest()
    await send(request, 100)
    await chain.mine()
    await scan()
    await storeRequest(knex, account, request)
    await detection.onRequestsStored(account, [request])
    expect(await statuses(request)).toEqual(['PENDING'])
    await chain.reorg(1)
    await chain.mine()
    await scan()
    expect(await statuses(request)).toEqual([])
  })

  it('do not get a payment of a block that was replaced since it was read', async () => {
    const request = newRequest()
    const hash = await send(request, 100)
    await send(newRequest(), 1)
    await chain.mine()
    await scan()
    await chain.reorg(1, [{ hash }])
    await storeRequest(knex, account, request)
    await detection.onRequestsStored(account, [request])
    expect(await statuses(request)).toEqual([])
    await scan()
    expect(await statuses(request)).toEqual(['PENDING'])
  })

  it('get payments too if they are stored by a second account later', async () => {
    const request = await storeRequest(knex, account, newRequest())
    await send(request, 100)
    await chain.mine()
    await scan()
    const second = await addAccount(knex, 'second')
    await storeRequest(knex, second, request)
    await detection.onRequestsStored(second, [request])
    expect(await paymentsOf(knex, second, request)).toMatchObject([{ status: 'PENDING', amount: '100' }])
    expect(await statuses(request)).toEqual(['PENDING'])
  })

  it('get a payment whose block is read while they are being stored', async () => {
    await scan()
    const request = newRequest()
    await send(request, 100)
    await chain.mine()
    const reading = Promise.withResolvers<void>()
    // The topic is looked up, then the write waits for the chain's lock, and meanwhile the request is stored.
    knex.on('query-response', (_: unknown, { sql }: { sql: string }) => {
      if (sql.startsWith('select topic, account_id')) reading.resolve()
    })
    const second = createDatabase(database.connection, { poolMax: 2 })
    let scanning: Promise<void> | undefined
    await second.transaction(async (trx) => {
      await trx('chain_state').forUpdate()
      scanning = scan()
      await reading.promise
      await storeRequest(second, account, request)
    })
    await scanning
    await second.destroy()
    expect(await statuses(request)).toEqual(['PENDING'])
  })

  it('get at the next start what a process that died left behind', async () => {
    const request = newRequest()
    await send(request, 100)
    await chain.mine()
    await scan()
    await storeRequest(knex, account, request)
    await knex('leases').delete()
    await detect(knex, [followed()], { owner: 'second' }).scanOnce()
    expect(await statuses(request)).toEqual(['PENDING'])
  })

  it('get their payments later if the chain does not answer at once', async () => {
    const request = newRequest()
    await send(request, 100)
    await chain.mine()
    await scan()
    detection = detect(knex, [followed()], { owner: 'second' })
    proxy.fail(503)
    await storeRequest(knex, account, request)
    await detection.onRequestsStored(account, [request])
    expect(await statuses(request)).toEqual([])
    proxy.fail()
    await knex('leases').delete()
    detection.start()
    await until(() => statuses(request), ['PENDING'])
  })

  it('find the latest events of unknown topics, as many of accounts, and all that are not final', async () => {
    detection = detect(knex, [followed()], { keepUnknown: 2 })
    const request = await storeRequest(knex, account, newRequest())
    for (let made = 0; made < 4; made++) {
      await send(newRequest(), 1)
      await send(request, 1, { to: payer })
      await chain.mine()
    }
    await scan()
    expect(await unmatchedOf(knex, 0)).toHaveLength(3)
    expect(await unmatchedOf(knex, account.id)).toHaveLength(3)
    await chain.mine({ blocks: 3 })
    await send(newRequest(), 1)
    await send(request, 1, { to: payer })
    await chain.mine()
    await scan()
    expect(await unmatchedOf(knex, 0)).toEqual(['UNKNOWN_TOPIC', 'UNKNOWN_TOPIC'])
    expect(await unmatchedOf(knex, account.id)).toEqual(['WRONG_PAYEE', 'WRONG_PAYEE'])
  })
})

describe('imported payments', () => {
  it('keep their id when their event is found', async () => {
    const request = await storeRequest(knex, account, newRequest())
    const hash = await send(request, 100)
    await chain.mine()
    const id = crypto.randomUUID()
    await knex('payments').insert({
      account_id: account.id,
      id,
      status: 3,
      final: true,
      imported: true,
      timestamp: new Date(),
      updated_at: new Date(0),
      network: 'BASE',
      currency: 'USDC-BASE',
      currency_symbol: 'USDC',
      amount: '100',
      tx_hash: Buffer.from(hash.slice(2), 'hex'),
      event_index: 0,
    })
    await scan()
    expect(await paymentsOf(knex, account, request)).toMatchObject([{ id, amount: '100', payer: canonical(payer) }])
    expect(await knex('payments')).toHaveLength(1)
  })
})

/** Checks every few milliseconds until it is true, as long as the test may run. */
async function until<T>(scan: () => T | Promise<T>, expected: T): Promise<void> {
  await expect.poll(scan, { interval: 20, timeout: 15_000 }).toEqual(expected)
}
