/**
 * All writers of payments, in any order and at the same time: imports, requests, and detection on two chains with reorgs. The derived rows
 * must always be right, and undoing the log of changes must give each earlier state.
 */
import { createHash, randomUUID } from 'node:crypto'
import { Readable } from 'node:stream'
import fc from 'fast-check'
import type { Knex } from 'knex'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { DetectedPayment, DetectedRefund, Findings } from '../../src/detection/match/detected.ts'
import type { BlockHeader } from '../../src/detection/read/chain-reader.ts'
import { createPaymentWriter, type PaymentWriter } from '../../src/detection/write/payment-writer.ts'
import type { Account } from '../../src/domain/account.ts'
import type { Hex } from '../../src/domain/hex.ts'
import { paymentIdOf } from '../../src/domain/identifiers.ts'
import type { PaymentRequest } from '../../src/domain/payment-request.ts'
import { importPayments } from '../../src/imports/import-payments.ts'
import { importLines } from '../../src/imports/lines/import-lines.ts'
import { inTransaction } from '../../src/postgres/cancellable.ts'
import { forgetChain } from '../../src/store/forget-chain.ts'
import { acquireLease } from '../../src/store/leases-repository.ts'
import { createTestDatabase, type TestDatabase } from '../support/data/database.ts'
import { findDifferences, type LedgerState, readLedger, undoTo } from '../support/data/ledger.ts'
import { addAccount, canonical, makeRequest, storeRequest } from '../support/detection.ts'

let database: TestDatabase
let knex: Knex
beforeAll(async () => {
  database = await createTestDatabase({ poolMax: 8 })
  knex = database.knex
})
afterAll(() => database.drop())

const PAYEE = canonical(`0x${'a1'.repeat(20)}`)
const PAYER = canonical(`0x${'b1'.repeat(20)}`)
const NETWORKS = ['BASE', 'POLYGON'] as const
type Network = (typeof NETWORKS)[number]
const START_SEC = Date.UTC(2026, 10, 1) / 1_000

const hashOf = (text: string): Hex => `0x${createHash('sha256').update(text).digest('hex')}`

/** A payment that a writer writes: event `n` of a chain, for one of an account's requests. */
interface Written {
  readonly n: number
  readonly request: number
  readonly amount: number
}

type Step =
  | { readonly kind: 'import'; readonly account: number; readonly lines: readonly (Written & Line)[] }
  | { readonly kind: 'request'; readonly account: number; readonly request: number }
  | { readonly kind: 'advance'; readonly chain: Network; readonly found: readonly Found[]; readonly final: boolean }
  | { readonly kind: 'rewind'; readonly chain: Network; readonly blocks: number }
  | { readonly kind: 'restart'; readonly chain: Network; readonly blocks: number }
  | { readonly kind: 'forget'; readonly chain: Network }

/** The fields of an imported payment beyond its event. */
interface Line {
  readonly network: Network
  readonly status: string
  /** `updatedAt`, in minutes. */
  readonly updated: number
  readonly names: 'request' | 'reference' | 'event' | 'nothing'
}

interface Found extends Written {
  readonly account: number
  readonly isRefund: boolean
}

const written = { n: fc.nat(7), request: fc.nat(2), amount: fc.integer({ min: 1, max: 12 }) }
const network = fc.constantFrom(...NETWORKS)
const account = fc.nat(1)
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('import' as const),
      account,
      lines: fc.array(
        fc.record({
          ...written,
          network,
          status: fc.constantFrom('PENDING', 'PARTIAL', 'CONFIRMED', 'REFUNDED', 'FAILED'),
          updated: fc.nat(90),
          names: fc.constantFrom('request' as const, 'reference' as const, 'event' as const, 'nothing' as const),
        }),
        { minLength: 1, maxLength: 6 },
      ),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('request' as const), account, request: fc.nat(2) }) },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('advance' as const),
      chain: network,
      found: fc.array(fc.record({ ...written, account, isRefund: fc.boolean() }), { maxLength: 3 }),
      final: fc.boolean(),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('rewind' as const), chain: network, blocks: fc.nat(3) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('restart' as const), chain: network, blocks: fc.nat(6) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('forget' as const), chain: network }) },
)

/** Two accounts with three requests each on both chains. A request may not be stored yet. */
interface World {
  /** In the names of accounts and chains. */
  readonly name: string
  readonly accounts: readonly Account[]
  readonly requestOf: (at: number, chain: Network, n: number) => PaymentRequest
  /** Place of the account and request id of the stored requests. */
  readonly stored: Set<string>
}

async function openWorld() {
  const name = randomUUID().slice(0, 8)
  const accounts = [await addAccount(knex, `${name}-a`), await addAccount(knex, `${name}-b`)]
  const requests = accounts.map(() => NETWORKS.map((chain) => [1, 2, 3].map((n) => requestOn(name, chain, n))))
  const world: World = {
    name,
    accounts,
    requestOf: (at, chain, n) => requests[at]?.[NETWORKS.indexOf(chain)]?.[n] as PaymentRequest,
    stored: new Set(),
  }
  const chains = { BASE: await openChain(name, 'BASE'), POLYGON: await openChain(name, 'POLYGON') }

  async function run(given: Step): Promise<void> {
    switch (given.kind) {
      case 'import':
        return bring(accounts[given.account] as Account, linesOf(world, given))
      case 'request':
        return storeRequests(world, given)
      case 'advance':
        return chains[given.chain].advance(findingsOf(world, given), given.final)
      case 'rewind':
        return chains[given.chain].rewind(given.blocks)
      case 'restart':
        return chains[given.chain].restart(given.blocks)
      case 'forget':
        await forgetChain(knex, { name: given.chain, chainId: chains[given.chain].chainId }, new Date())
        for (const key of world.stored) if (!(await isStored(world, key))) world.stored.delete(key)
        await chains[given.chain].open()
    }
  }

  // One request of three is stored from the beginning, so that most payments belong to a request.
  for (const at of [0, 1]) await run({ kind: 'request', account: at, request: 0 })
  return { accounts, run }
}

function requestOn(world: string, chain: Network, n: number): PaymentRequest {
  const requestId = `01${hashOf(`${world} ${chain} ${n}`).slice(2)}`
  return makeRequest({ network: chain, payee: PAYEE, amount: `${n * 8}`, requestId })
}

async function storeRequests(world: World, { account: at, request: n }: Extract<Step, { kind: 'request' }>) {
  for (const chain of NETWORKS) {
    const request = world.requestOf(at, chain, n)
    await storeRequest(knex, world.accounts[at] as Account, request)
    world.stored.add(`${at} ${request.requestId}`)
  }
}

async function isStored({ accounts }: World, key: string): Promise<boolean> {
  const [at, id = ''] = key.split(' ')
  const where = { account_id: accounts[Number(at)]?.id, request_id: Buffer.from(id, 'hex') }
  return (await knex('requests').where(where).first()) !== undefined
}

function linesOf({ name, requestOf }: World, { account: at, lines }: Extract<Step, { kind: 'import' }>) {
  return lines.map(({ n, request, amount, network: chain, status, updated, names }) => ({
    id: `00000000-0000-4000-8000-0000000000${chain === 'BASE' ? '0' : '1'}${n}`,
    status,
    timestamp: new Date((START_SEC + n) * 1_000).toISOString(),
    updatedAt: new Date((START_SEC + updated * 60) * 1_000).toISOString(),
    amount: String(amount),
    currency: `USDC-${chain}`,
    network: chain,
    ...(names === 'request' && { requestId: requestOf(at, chain, request).requestId }),
    ...(names === 'reference' && { paymentReference: requestOf(at, chain, request).paymentReference }),
    ...(names !== 'nothing' && { txHash: hashOf(`${name} ${chain} ${n}`), eventIndex: 0 }),
  }))
}

function findingsOf(world: World, { chain, found }: Extract<Step, { kind: 'advance' }>) {
  const { name, accounts, requestOf, stored } = world
  const known = found.filter((one) =>
    stored.has(`${one.account} ${requestOf(one.account, chain, one.request).requestId}`),
  )
  // An event belongs to one request of an account, and a block has it once.
  const distinct = [...new Map(known.map((one) => [`${one.account} ${one.n} ${one.isRefund}`, one])).values()]
  const byAccount = Map.groupBy(distinct, ({ account: at }) => at)
  return (header: BlockHeader): Findings => {
    const seen = (one: Found) => seenOf(one, { name, chain, header })
    const findingsOfAccount = ([at, all]: [number, Found[]]) => {
      const own = accounts[at] as Account
      const request = (one: Found) => requestOf(at, chain, one.request)
      const payments = all
        .filter(({ isRefund }) => !isRefund)
        .map((one) => paymentOf({ one, own, request: request(one), seen: seen(one) }))
      const refunds = all.filter(({ isRefund }) => isRefund).map((one) => refundOf(one, request(one), seen(one)))
      return [own.id, { payments, refunds }] as const
    }
    return {
      accounts: new Map([...byAccount].map(findingsOfAccount)),
      unmatched: [],
      proxies: [],
      directory: new Map(),
      untraced: new Set(),
      withoutTrace: new Set(),
      lacking: [],
    }
  }
}

function refundOf(one: Found, request: PaymentRequest, seen: ReturnType<typeof seenOf>): DetectedRefund {
  return {
    ...seen,
    requestId: request.requestId,
    amount: `${one.amount}`,
    currency: request.paymentCurrency,
    recipient: PAYER,
  }
}

interface Seen {
  readonly name: string
  readonly chain: Network
  readonly header: BlockHeader
}

function seenOf({ n, isRefund }: Found, { name, chain, header }: Seen) {
  return {
    txHash: hashOf(`${name} ${chain} ${isRefund ? 'refund ' : ''}${n}`),
    eventIndex: 0,
    logIndex: n * 2 + Number(isRefund),
    blockNumber: header.number,
    timestamp: new Date(header.timestampSec * 1_000),
  }
}

function paymentOf({
  one,
  own,
  request,
  seen,
}: {
  one: Found
  own: Account
  request: PaymentRequest
  seen: ReturnType<typeof seenOf>
}): DetectedPayment {
  return {
    ...seen,
    id: paymentIdOf({ account: own.name, chainId: request.network, txHash: seen.txHash, eventIndex: 0 }),
    requestId: request.requestId,
    type: 'DIRECT',
    amount: `${one.amount}`,
    currency: request.paymentCurrency,
    invoiceAmount: `${one.amount}`,
    invoiceCurrency: request.invoiceCurrency,
    payee: PAYEE,
    payer: PAYER,
    initiator: PAYER,
    paymentReference: request.paymentReference,
    fees: [],
    marks: [],
    exchangeRates: [],
  }
}

async function bring(to: Account, lines: readonly object[]): Promise<void> {
  const text = lines.map((line) => JSON.stringify(line)).join('\n')
  await importLines(Readable.from([Buffer.from(text)]), importPayments(knex, to), { batchLines: 3 })
}

/** A chain of invented blocks, written as the follower writes. */
async function openChain(world: string, chain: Network) {
  const chainId = `test:${world}-${chain}`
  const lease = { name: `follow:${chainId}`, owner: 'test' }
  const writer: PaymentWriter = createPaymentWriter({
    knex,
    chain: { chainId, network: chain },
    clock: () => new Date(),
  })
  let made = 0
  let blocks: BlockHeader[] = []
  let finalBlock = 0

  const mine = (number: number): BlockHeader => {
    made++
    const hash = hashOf(`${chainId} ${made}`)
    return { number, hash, parentHash: hash, timestampSec: START_SEC + made }
  }
  const head = () => blocks.at(-1) as BlockHeader

  async function open(): Promise<void> {
    await acquireLease(knex, lease, 600_000)
    blocks = [mine(100)]
    finalBlock = 0
    await writer.open(hashOf(chainId), head(), 100)
  }
  await open()

  return {
    chainId,
    open,
    async advance(findings: (header: BlockHeader) => Findings, isFinal: boolean) {
      const from = head()
      const block = mine(from.number + 1)
      blocks.push(block)
      if (isFinal) finalBlock = Math.max(finalBlock, block.number - 2)
      await writer.advance({
        lease,
        from,
        blocks: [block],
        headBlock: block.number,
        finalBlock,
        hasFinalizedTag: true,
        findings: findings(block),
      })
    },
    async rewind(count: number) {
      const from = head()
      const to = Math.max(from.number - count, finalBlock, 100)
      if (to === from.number) return
      blocks = blocks.filter(({ number }) => number <= to)
      await writer.rewind({ lease, from, to: head() })
    },
    /** Rewinds final blocks as well. */
    async restart(count: number) {
      const to = Math.max(head().number - count, 100)
      blocks = blocks.filter(({ number }) => number <= to)
      finalBlock = Math.min(finalBlock, to)
      await writer.restart(lease, head())
    },
  }
}

describe('after any writes in any order', () => {
  it('statistics, log and requests are right, and undoing the log gives every earlier state', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 25 }), async (steps) => {
        const { accounts, run } = await openWorld()
        const ids = accounts.map(({ id }) => id)
        const moments: LedgerState[][] = []
        for (const each of steps) {
          await run(each)
          moments.push(await Promise.all(ids.map((id) => readLedger(knex, id))))
        }
        expect(await findDifferences(knex)).toEqual([])
        for (const [at, id] of ids.entries()) {
          for (const moment of moments) {
            const then = moment[at] as LedgerState
            expect(await undoTo(knex, id, then.change)).toEqual(then)
          }
          expect((await undoTo(knex, id, 0n)).rows.size).toBe(0)
        }
        await forgetWorld(ids)
      }),
      { numRuns: 10, endOnFailure: true },
    )
  })
})

it('a refund that is detected again for another request changes neither request', async () => {
  const { accounts, run } = await openWorld()
  await run({ kind: 'request', account: 0, request: 1 })
  const ofFirst = { n: 1, account: 0, request: 0, amount: 5 }
  const found = [
    { ...ofFirst, isRefund: false },
    { ...ofFirst, n: 2, request: 1, isRefund: false },
  ]
  await run({ kind: 'advance', chain: 'BASE', found, final: false })
  await run({ kind: 'advance', chain: 'BASE', found: [{ ...ofFirst, isRefund: true }], final: false })
  const refunded = () => knex('payments').where({ account_id: accounts[0]?.id }).orderBy('id').pluck('refunded_amount')
  const before = await refunded()
  expect(before.map(Number)).toEqual(expect.arrayContaining([0, 5]))
  await run({ kind: 'advance', chain: 'BASE', found: [{ ...ofFirst, request: 1, isRefund: true }], final: false })
  expect(await findDifferences(knex)).toEqual([])
  expect(await refunded()).toEqual(before)
  await forgetWorld(accounts.map(({ id }) => id))
})

describe('concurrent writers', () => {
  it('leave exact statistics and a log without gaps, and never deadlock', async () => {
    const failed: string[] = []
    const onError = (error: { code?: string; message: string }) => void failed.push(`${error.code} ${error.message}`)
    knex.on('query-error', onError)
    const { accounts, run } = await openWorld()
    const steps = fc.sample(step, { numRuns: 200, seed: 11 }).filter(({ kind }) => kind !== 'forget')
    // One process follows a chain; several may import into an account.
    const workers = Map.groupBy(steps, (each) => {
      if ('chain' in each) return each.chain
      return each.kind === 'import' ? `import ${each.account} ${each.lines.length % 2}` : `request ${each.request % 2}`
    })
    expect(workers.size).toBe(8)
    const inOrder = async (some: readonly Step[]) => {
      for (const each of some) await run(each)
    }
    await Promise.all([...workers.values()].map(inOrder))
    knex.off('query-error', onError)
    expect(failed).toEqual([])
    expect(await findDifferences(knex)).toEqual([])
    for (const { id } of accounts) {
      const { change, rows } = await readLedger(knex, id)
      expect(change).toBeGreaterThan(50n)
      expect(rows.size).toBeGreaterThan(5)
      expect((await undoTo(knex, id, 0n)).rows.size).toBe(0)
    }
    await forgetWorld(accounts.map(({ id }) => id))
  })
})

/** Deletes the rows of a run, so that the next one does not check them again. */
async function forgetWorld(ids: readonly number[]): Promise<void> {
  await inTransaction(knex, undefined, async (trx) => {
    const tables = ['payments', 'payment_changes', 'payment_statistics', 'account_changes', 'requests', 'refunds']
    for (const table of tables) await trx(table).whereIn('account_id', ids).delete()
    await trx('accounts').whereIn('id', ids).delete()
  })
}
