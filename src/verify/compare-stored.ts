import type { Knex } from 'knex'
import type { ChainConfig } from '../chains/chains-file.ts'
import type { TokenDirectory } from '../chains/token-directory.ts'
import type { Account } from '../domain/account.ts'
import { caip2Of } from '../domain/chain.ts'
import { bytesToHex, type Hex } from '../domain/hex.ts'
import { inTransaction } from '../postgres/cancellable.ts'
import { listStoredAccounts } from '../store/proof/check-account.ts'
import { checkStatistics } from '../store/proof/check-statistics.ts'
import type { EventFact } from './chain-facts.ts'
import {
  type Compared,
  type ComparedAccount,
  type Comparison,
  compareRequests,
  UNDECIDED,
  unmatchedKey,
} from './compare-account.ts'
import { differencesOf } from './differences.ts'
import { type FieldTexts, storedUnmatchedTexts, unmatchedTexts } from './expected-rows.ts'
import type { RangePlan } from './plan-range.ts'
import { acceptedOf, findAccounts, requestsOfIds, requestsOfTopics, walletsOf } from './sql/stored-requests.ts'
import {
  countUnmatched,
  historyBlocks,
  pendingTopics,
  touchedBetween,
  type UnmatchedRow,
  unmatchedBetween,
} from './sql/stored-rows.ts'
import type { Unproven, VerifyDifference, VerifyReport } from './verify-report.ts'

/** What was read of the chain. */
export interface ReadFacts {
  readonly plan: RangePlan
  /** Events whose topic some account knew. */
  readonly facts: readonly EventFact[]
  /** The others. */
  readonly unknown: readonly Pick<EventFact, 'txHash' | 'blockNumber' | 'timestampSec' | 'event'>[]
  /** Blocks whose events are not certain. */
  readonly uncertain: ReadonlySet<number>
  readonly unproven: readonly Unproven[]
  readonly receiptsRead: number
  /** Of the first and the last block. */
  readonly fromTime: Date
  readonly toTime: Date
}

export interface CompareTerms {
  readonly knex: Knex
  readonly chain: ChainConfig
  readonly tokens: TokenDirectory
  readonly account?: Account | undefined
  readonly signal?: AbortSignal | undefined
  /** Reads further blocks, for the earlier and later payments of requests. */
  readMore(
    blocks: readonly number[],
  ): Promise<{ readonly facts: readonly EventFact[]; readonly uncertain: readonly number[] }>
}

type Outcome = Pick<VerifyReport, 'differences' | 'unproven'> & {
  readonly counts: Pick<VerifyReport['counts'], 'payments' | 'refunds' | 'unmatched' | 'requests'>
}

const REQUESTS_A_PAGE = 200
/** How many unmatched events a chain keeps, of no account and of accounts. @see CHAIN, "Which event is a payment of which request" */
const KEPT_UNMATCHED = 100_000

/** Compares what was read of the chain with what is stored. Each page of requests is read in a snapshot of its own. */
export async function compareStored(terms: CompareTerms, read: ReadFacts): Promise<Outcome> {
  const { knex, account } = terms
  const touched = await findTouched(terms, read)
  const history = await readHistory(terms, read, touched)
  const comparison: Comparison = {
    chain: terms.chain,
    tokens: terms.tokens,
    factsOf: Map.groupBy([...read.facts, ...history.facts], ({ event }) => event.topic),
    isRead: (number) =>
      !read.uncertain.has(number) &&
      (history.read.has(number) || read.plan.spans.some(({ from, to }) => number >= from && number <= to)),
  }
  const names = new Map((await listStoredAccounts(knex)).map(({ id, name }) => [id, name]))
  const pages: Compared[] = []
  const statistics: VerifyDifference[] = []
  for (const [id, requestIds] of touched) {
    const of = { id, name: names.get(id) ?? `#${id}` }
    pages.push(...(await comparePages(terms, comparison, of, [...requestIds].toSorted())))
    statistics.push(...(await compareStatistics(terms, of)))
  }
  const expected = new Map(pages.flatMap(({ unmatched }) => [...unmatched]))
  const unmatched = await compareUnmatched(terms, read, { expected, comparison, names })
  const sumOf = (field: 'payments' | 'refunds') => pages.reduce((sum, page) => sum + page[field], 0)
  return {
    differences: [...pages.flatMap(({ differences }) => differences), ...unmatched.differences, ...statistics],
    unproven: pages.flatMap(({ unproven }) => unproven),
    counts: {
      payments: sumOf('payments'),
      refunds: sumOf('refunds'),
      unmatched: account === undefined ? unmatched.count : expected.size,
      requests: [...touched.values()].reduce((sum, ids) => sum + ids.size, 0),
    },
  }
}

function inSnapshot<T>({ knex, signal }: CompareTerms, work: (trx: Knex) => Promise<T>): Promise<T> {
  return inTransaction(knex, signal, work, { isolationLevel: 'repeatable read', readOnly: true })
}

/** The requests that events or stored rows of the range belong to, by account. */
async function findTouched(terms: CompareTerms, read: ReadFacts): Promise<Map<number, Set<string>>> {
  const { knex, account, chain } = terms
  const touched = new Map<number, Set<string>>()
  const touch = (accountId: number, requestId: string) => {
    if (account !== undefined && account.id !== accountId) return
    touched.set(accountId, (touched.get(accountId) ?? new Set<string>()).add(requestId))
  }
  const topics = [...new Set(read.facts.map(({ event }) => event.topic))]
  const byAccount = Map.groupBy(
    [...(await findAccounts(knex, topics))].flatMap(([topic, ids]) => ids.map((id) => ({ topic, id }))),
    ({ id }) => id,
  )
  for (const [id, known] of byAccount) {
    const requests = await requestsOfTopics(
      knex,
      id,
      known.map(({ topic }) => topic),
    )
    for (const { requestId } of requests) touch(id, requestId)
  }
  const accounts = account === undefined ? (await listStoredAccounts(knex)).map(({ id }) => id) : [account.id]
  const { fromTime, toTime, plan } = read
  for (const span of plan.spans) {
    const blocks = { ...span, chainId: caip2Of(chain.chainId), fromTime, toTime }
    for (const { accountId, requestId } of await touchedBetween(knex, accounts, blocks)) touch(accountId, requestId)
  }
  return touched
}

/** Reads the blocks outside the range in which touched requests have something stored. */
async function readHistory(terms: CompareTerms, read: ReadFacts, touched: ReadonlyMap<number, ReadonlySet<string>>) {
  const { knex, chain } = terms
  const { plan } = read
  const numbers = new Set<number>()
  for (const [accountId, ids] of touched) {
    const requestIds = [...ids]
    const requests = await requestsOfIds(knex, accountId, requestIds)
    const topics = requests.flatMap(({ topic, refundTopic }) => (refundTopic ? [topic, refundTopic] : [topic]))
    const which = { chainId: caip2Of(chain.chainId), requestIds, topics }
    for (const number of await historyBlocks(knex, accountId, which)) numbers.add(number)
  }
  const isRead = (number: number) => plan.spans.some(({ from, to }) => number >= from && number <= to)
  const missing = [...numbers]
    .filter((number) => number <= plan.pinned.number && !isRead(number))
    .toSorted((a, b) => a - b)
  const { facts, uncertain } = await terms.readMore(missing)
  return { facts, read: new Set(missing.filter((number) => !uncertain.includes(number))) }
}

async function comparePages(
  terms: CompareTerms,
  comparison: Comparison,
  { id, name }: Account,
  requestIds: readonly string[],
): Promise<Compared[]> {
  const chainId = caip2Of(terms.chain.chainId)
  const pages: Compared[] = []
  for (let from = 0; from < requestIds.length; from += REQUESTS_A_PAGE) {
    const some = requestIds.slice(from, from + REQUESTS_A_PAGE)
    const page = await inSnapshot(terms, async (trx) => {
      const [wallets, accepted] = [await walletsOf(trx, id), await acceptedOf(trx, id, chainId)]
      const account: ComparedAccount = { id, name, wallets, accepted }
      return compareRequests(trx, comparison, account, some)
    })
    pages.push(page)
  }
  return pages
}

async function compareStatistics(terms: CompareTerms, { id, name }: Account): Promise<VerifyDifference[]> {
  const found = await inSnapshot(terms, (trx) => checkStatistics(trx, id))
  return found.map(({ where, stored, expected }) => ({
    kind: 'STATISTICS',
    account: name,
    field: where,
    stored,
    chain: expected,
  }))
}

interface UnmatchedTerms {
  /** Rows of accounts, by {@link unmatchedKey}. */
  readonly expected: ReadonlyMap<string, FieldTexts>
  readonly comparison: Comparison
  readonly names: ReadonlyMap<number, string>
}

/** Compares unmatched events both ways: what the chain has must be stored, unless it is so old that it was deleted, and nothing else. */
async function compareUnmatched(
  terms: CompareTerms,
  read: ReadFacts,
  { expected, comparison, names }: UnmatchedTerms,
): Promise<{ differences: VerifyDifference[]; count: number }> {
  const { chain, account } = terms
  const chainId = caip2Of(chain.chainId)
  return inSnapshot(terms, async (trx) => {
    const pending = new Set((await pendingTopics(trx)).map(bytesToHex))
    const all = new Map([...expected, ...(account === undefined ? await unknownEvents(trx, read) : [])])
    const left = new Map([...all].filter(([, texts]) => isInSpans(read.plan, Number(texts['blockNumber']))))
    const count = left.size
    const differences: VerifyDifference[] = []
    for (const { from, to } of read.plan.spans) {
      for await (const rows of unmatchedBetween(trx, { chainId, from, to })) {
        for (const row of rows) {
          const key = unmatchedKey(row.account_id, bytesToHex(row.tx_hash), row.event_index)
          const chainSays = left.get(key)
          left.delete(key)
          if (isLeftOut(row, terms, comparison, pending)) continue
          differences.push(...compareOne(row, chainSays, names))
        }
      }
    }
    const counts = await countUnmatched(trx, chainId)
    const lacking = [...left].filter(([key, texts]) => {
      const isKept = (key.startsWith('0 ') ? counts.unknown : counts.known) < KEPT_UNMATCHED
      return isKept && !pending.has(texts['topic'] as Hex) && comparison.isRead(Number(texts['blockNumber']))
    })
    differences.push(...lacking.map(([key, texts]) => describeLacking(key, texts, names)))
    return { differences, count }
  })
}

function isInSpans({ spans }: RangePlan, number: number): boolean {
  return spans.some(({ from, to }) => number >= from && number <= to)
}

/** Events whose topic no account knows even now. They are stored under the index of their log. */
async function unknownEvents(trx: Knex, { unknown }: ReadFacts): Promise<[string, FieldTexts][]> {
  const known = await findAccounts(trx, [...new Set(unknown.map(({ event }) => event.topic))])
  return unknown
    .filter(({ event }) => !known.has(event.topic))
    .map((each) => [unmatchedKey(0, each.txHash, each.event.logIndex), unmatchedTexts(each, 'UNKNOWN_TOPIC')])
}

function isLeftOut(
  row: UnmatchedRow,
  { account }: CompareTerms,
  comparison: Comparison,
  pending: ReadonlySet<Hex>,
): boolean {
  if (row.reason === 'RECEIPT_TOO_LARGE' || pending.has(bytesToHex(row.topic))) return true
  if (account !== undefined && row.account_id !== account.id) return true
  return !comparison.isRead(Number(row.block_number))
}

function compareOne(
  row: UnmatchedRow,
  chainSays: FieldTexts | undefined,
  names: ReadonlyMap<number, string>,
): VerifyDifference[] {
  const at = {
    kind: 'UNMATCHED',
    account: names.get(row.account_id),
    txHash: bytesToHex(row.tx_hash),
    eventIndex: row.event_index,
    blockNumber: Number(row.block_number),
  } as const
  if (chainSays === undefined) return [{ ...at, field: 'row', stored: row.reason }]
  const isUndecided = chainSays['reason'] === UNDECIDED
  return differencesOf(at, storedUnmatchedTexts(row), chainSays, (field) => isUndecided && field === 'reason')
}

function describeLacking(key: string, texts: FieldTexts, names: ReadonlyMap<number, string>): VerifyDifference {
  const [accountId, txHash, eventIndex] = key.split(' ')
  return {
    kind: 'UNMATCHED',
    account: names.get(Number(accountId)),
    txHash,
    eventIndex: Number(eventIndex),
    blockNumber: Number(texts['blockNumber']),
    field: 'row',
    chain: texts['reason'],
  }
}
