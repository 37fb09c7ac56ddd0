import type { TokenDirectory } from '../../chains/token-directory.ts'
import { decodeCreatedProxyLog, type FeeProxyEvent, type RpcLog } from '../../contracts/decode-events.ts'
import type { Address } from '../../domain/address.ts'
import type { Hex } from '../../domain/hex.ts'
import { buildPayment, buildRefund, lacksOfGas } from '../match/build-payment.ts'
import { type CreatedProxy, eventKeyOf, type Findings, type Lack, type LackingTransaction } from '../match/detected.ts'
import type { FollowedContracts, ObservedChain } from '../match/followed-contracts.ts'
import { judgeRate, type Match, matchEvent, matchPayment } from '../match/match-event.ts'
import { addressesIn, needsCalls } from '../match/native-payers.ts'
import { type ReadEvent, readTransaction, type SeenEvent } from '../match/read-transaction.ts'
import { decodeLog, describeMatched, describeUnread, type LoggedEvent } from '../match/unmatched-events.ts'
import type { TransactionReceipt } from '../read/chain-reader.ts'
import type { Market, MarketReader, ValuedPayment } from '../read/market.ts'
import type { RatedPath } from '../read/path-rates.ts'
import type { Patience } from '../read/patience.ts'
import type { ReadCalls, TraceReader } from '../read/trace-reader.ts'
import type { FirstPayment } from '../sql/account-events-repository.ts'
import type { DetectionRepository } from '../sql/detection-repository.ts'
import { type AccountBook, openAccountBook } from './account-book.ts'

/** Logs of followed contracts, and how to read what else is needed about them. */
interface LoggedEvents {
  /** In the order of the chain. */
  readonly logs: readonly RpcLog[]
  /**
   * Reads receipts of transactions that are part of the chain; leaves out those that are too large.
   *
   * @throws when one is gone: then nothing is found in these logs
   */
  receipts(hashes: readonly Hex[]): Promise<TransactionReceipt[]>
  /** The timestamps of these blocks, in seconds. */
  blockTimes(numbers: readonly number[]): Promise<ReadonlyMap<number, number>>
  /** Present where all of these transactions were read before. */
  readonly reread?: Reread | undefined
  readonly patience: Patience
}

/** Transactions that are read again for one account: they are matched for it alone, and what is stored of them is left out of matching. */
interface Reread {
  readonly accountId: number
  /** Those that had no trace before either, so that nothing is lost if they have none now. */
  readonly neverTraced: ReadonlySet<Hex>
}

/** An event of a topic that an account knows, and what it is to that account. */
interface MatchedEvent extends ReadEvent {
  readonly accountId: number
  readonly match: Match
}

/**
 * Finds the payments and refunds in logs, by account, and what is neither, with the reason. Only transactions with a topic that some account knows
 * cost a receipt.
 */
export async function findPayments(tools: FindingTools, logged: LoggedEvents, signal?: AbortSignal): Promise<Findings> {
  const { followed } = tools.chain
  const { reread, patience } = logged
  const events = logged.logs
    .flatMap((log) => decodeLog(log))
    .filter(({ event }) => followed.contracts.has(event.emitter))
  const directory = await tools.repository.accountsOfTopics([...new Set(events.map(({ event }) => event.topic))])
  const isKnown = ({ event }: LoggedEvent) => directory.has(event.topic)
  const receipts = await logged.receipts([...new Set(events.filter(isKnown).map(({ txHash }) => txHash))])
  const read = new Set(receipts.map(({ txHash }) => txHash))
  const tooLarge = events.filter((each) => isKnown(each) && !read.has(each.txHash))
  const unknown = reread === undefined ? events.filter((each) => !isKnown(each)) : []
  const listings = logged.logs.filter(({ address }) => address.toLowerCase() === followed.oracle)
  const changed = listings.slice(-1).map((log) => ({ blockNumber: Number(log.blockNumber) }))
  const blockNumbers = new Set([...unknown, ...tooLarge, ...receipts, ...changed].map(({ blockNumber }) => blockNumber))
  const times = await logged.blockTimes([...blockNumbers])
  const proxies = findCreatedProxies(logged.logs, followed)
  const wanted = { receipts, proxies, directory, neverTraced: reread?.neverTraced, patience }
  const known = await readKnownEvents(tools, wanted, signal)
  const byAccount = await eventsByAccount(tools, known.events, directory, reread?.accountId)
  const valued = byAccount.flatMap((each) => findValuedPayments(tools, each, times))
  const market = await tools.market.read(valued, patience, signal)
  const matched = byAccount.flatMap((each) => matchEvents(tools, each, { times, market }))
  const unmatched = [
    ...matched.flatMap((each) => describeMatched(each, timeOf(times, each.receipt.blockNumber))),
    ...unknown.map((each) => describeUnread(each, 'UNKNOWN_TOPIC', timeOf(times, each.blockNumber))),
    ...tooLarge.map((each) => describeUnread(each, 'RECEIPT_TOO_LARGE', timeOf(times, each.blockNumber))),
  ]
  const accounts = await buildAccounts(tools, matched, { times, market })
  const lacking = findLacking(tools, matched, market)
  const withoutTrace = new Set(
    matched
      .filter(({ lacksTrace }) => lacksTrace)
      .map(({ event, receipt }) => eventKeyOf({ txHash: receipt.txHash, eventIndex: event.eventIndex })),
  )
  const { untraced } = known
  const [listChangedAtSec] = changed.map(({ blockNumber }) => timeOf(times, blockNumber))
  return { accounts, unmatched, proxies, directory, untraced, withoutTrace, lacking, listChangedAtSec }
}

/** Finds what is not known yet of the transactions of matched events, by account. */
function findLacking({ chain }: FindingTools, matched: readonly MatchedEvent[], market: Market): LackingTransaction[] {
  const found = new Map<string, LackingTransaction & { readonly lacks: Set<Lack> }>()
  for (const { accountId, event, match, receipt, lacksTrace } of matched) {
    const { txHash, blockNumber } = receipt
    const key = `${accountId} ${txHash}`
    const lacks = found.get(key)?.lacks ?? new Set<Lack>()
    if (lacksTrace && event.payer === undefined) lacks.add('TRACE')
    if (match.kind === 'PAYMENT') {
      for (const lack of lacksOfGas(receipt, chain)) lacks.add(lack)
      if ([match.token, chain.native].some((token) => market.isUnread(token, blockNumber))) lacks.add('PRICE')
      if (market.marksOf(event).includes('SCREENING_UNKNOWN')) lacks.add('SCREENING')
    }
    if (lacks.size > 0) found.set(key, { accountId, txHash, blockNumber, lacks })
  }
  return [...found.values()]
}

/** SingleRequestProxies that listed factories created. */
export function findCreatedProxies(logs: readonly RpcLog[], { factories }: FollowedContracts): CreatedProxy[] {
  return logs.flatMap((log) => {
    const created = factories.has(log.address.toLowerCase() as Address) ? decodeCreatedProxyLog(log) : undefined
    return created === undefined ? [] : [{ ...created, blockNumber: Number(log.blockNumber) }]
  })
}

/** Events whose topic one account knows, in the order of the chain, and what it has stored about them. */
interface AccountEvents {
  readonly accountId: number
  readonly events: readonly ReadEvent[]
  readonly book: AccountBook
}

/** @param rereader - the account for which the events are read again */
async function eventsByAccount(
  { chain, repository }: FindingTools,
  events: readonly ReadEvent[],
  directory: Findings['directory'],
  rereader: number | undefined,
): Promise<AccountEvents[]> {
  const knownBy = ({ topic }: SeenEvent) => directory.get(topic) ?? []
  const accountIds = rereader === undefined ? new Set(events.flatMap(({ event }) => knownBy(event))) : [rereader]
  const seen: AccountEvents[] = []
  for (const accountId of accountIds) {
    const own = events.filter(({ event }) => knownBy(event).includes(accountId))
    const book = await openAccountBook(repository, {
      accountId,
      chainId: chain.chainId,
      events: own.map(({ event, receipt }) => ({ event, txHash: receipt.txHash })),
      areReread: rereader !== undefined,
    })
    seen.push({ accountId, events: own.map((each) => withReportedPayer(withStoredPayer(each, book), book)), book })
  }
  return seen
}

/** A payer that was found by a trace before must not be lost because the trace cannot be read now. */
function withStoredPayer(read: ReadEvent, book: AccountBook): ReadEvent {
  const { event, receipt, lacksTrace } = read
  return lacksTrace ? { ...read, event: { ...event, payer: book.storedPayerOf(receipt.txHash, event) } } : read
}

/** A bridge's word alone does not make a payment one to oneself. */
function withReportedPayer(read: ReadEvent, book: AccountBook): ReadEvent {
  const { event, receipt } = read
  const reported = event.isCarried ? book.reportedPayerOf(receipt.txHash, event) : undefined
  if (reported === undefined || (reported.payer === event.to && !reported.isProven)) return read
  return { ...read, event: { ...event, payer: reported.payer } }
}

type BlockTimes = ReadonlyMap<number, number>

function timeOf(times: BlockTimes, blockNumber: number): number {
  const time = times.get(blockNumber)
  if (time === undefined) throw new Error(`the timestamp of block ${blockNumber} was not read`)
  return time
}

function placeOf(times: BlockTimes, { blockNumber }: TransactionReceipt): FirstPayment {
  return { timestampSec: timeOf(times, blockNumber), blockNumber }
}

/** Events that are payments unless the rate of their conversion is wrong: their prices and rates are read. */
function findValuedPayments(
  { chain, tokens }: FindingTools,
  { events, book }: AccountEvents,
  times: BlockTimes,
): ValuedPayment[] {
  return events.flatMap(({ event, receipt }) => {
    const match = matchPayment(event, book.requestsOf(event.topic), { chain: chain.name, tokens })
    if (match === undefined) return []
    const at = placeOf(times, receipt)
    const { invoiceCurrency } = match.request
    const isEnough = (path: RatedPath) =>
      judgeRate(match, event, { path, timestampSec: at.timestampSec }).kind === 'PAYMENT'
    const { payer, conversion } = event
    return [{ event, payer, token: match.token, ...at, conversion: conversion && { invoiceCurrency, isEnough } }]
  })
}

interface Circumstances {
  readonly times: BlockTimes
  readonly market: Market
}

/** Matches one account's events in the order of the chain: what counts as a refund depends on the payments before it. */
function matchEvents(
  { chain, tokens }: FindingTools,
  { accountId, events, book }: AccountEvents,
  { times, market }: Circumstances,
): MatchedEvent[] {
  return events.map((read) => {
    const { event, receipt } = read
    const at = placeOf(times, receipt)
    const accepted = book.acceptedAs(receipt.txHash, event)
    const matched = matchEvent(event, book.requestsOf(event.topic), {
      chain: chain.name,
      tokens,
      hasPaid: (request, address) => book.hasPaidBefore(at, request, address),
      hasUnknownPayer: (request) => book.hasUnknownPayerBefore(at, request),
      isWallet: (address) => book.isWalletAt(at, address),
      isIntermediary: (address) => chain.followed.intermediaries.has(address) || chain.followed.executors.has(address),
      accepted,
    })
    const match =
      accepted === 'PAYMENT'
        ? matched
        : judgeRate(matched, event, { path: market.pathOf(event), timestampSec: at.timestampSec })
    if (match.kind === 'PAYMENT') book.addPayment(match.request, event.payer)
    else if (matched.kind === 'PAYMENT') book.keepPayment(matched.request, receipt.txHash, event)
    return { ...read, accountId, match }
  })
}

async function buildAccounts(
  { chain, repository }: FindingTools,
  matched: readonly MatchedEvent[],
  { times, market }: Circumstances,
): Promise<Findings['accounts']> {
  const counted = matched.filter(({ match }) => match.kind !== 'UNMATCHED')
  const names = await repository.accountNames([...new Set(counted.map(({ accountId }) => accountId))])
  const accounts: Map<number, NonNullable<ReturnType<Findings['accounts']['get']>>> = new Map()
  for (const { accountId, event, receipt, match } of counted) {
    const account = accounts.get(accountId) ?? { payments: [], refunds: [] }
    accounts.set(accountId, account)
    const timestamp = new Date(timeOf(times, receipt.blockNumber) * 1_000)
    if (match.kind === 'REFUND') account.refunds.push(buildRefund(match, event, receipt, timestamp))
    if (match.kind !== 'PAYMENT') continue
    const name = names.get(accountId)
    if (name === undefined) throw new Error(`the account ${accountId} has requests but no name`)
    const payment = buildPayment({
      account: name,
      chain,
      match,
      event,
      receipt,
      timestamp,
      tokenPrice: market.priceAt(match.token, receipt.blockNumber),
      nativePrice: market.priceAt(chain.native, receipt.blockNumber),
      marks: market.marksOf(event),
    })
    account.payments.push(payment)
  }
  return accounts
}

/** Transactions with topics that some account knows. */
interface KnownTransactions {
  /** In the order of the chain. */
  readonly receipts: readonly TransactionReceipt[]
  /** SingleRequestProxies that were created in the same blocks. */
  readonly proxies: readonly CreatedProxy[]
  readonly directory: Findings['directory']
  /** Where they were read before: those that had no trace then either. */
  readonly neverTraced: ReadonlySet<Hex> | undefined
  readonly patience: Patience
}

/**
 * Reads the payment events of transactions. Where a receipt leaves open who paid in coins, the transaction's calls are read too; and addresses in
 * it that are SingleRequestProxies count as intermediaries. Those in `untraced` are left out: the node that traces them failed.
 *
 * @throws RpcError
 */
async function readKnownEvents(
  { chain, repository, traces }: Pick<FindingTools, 'chain' | 'repository' | 'traces'>,
  { receipts, proxies, directory, neverTraced, patience }: KnownTransactions,
  signal: AbortSignal | undefined,
): Promise<{ readonly events: readonly ReadEvent[]; readonly untraced: Findings['untraced'] }> {
  const { followed } = chain
  const isKnown = ({ topic }: FeeProxyEvent) => directory.has(topic)
  const unclear = receipts.filter((receipt) => needsCalls(receipt, followed, isKnown))
  const { known, failed } = unclear.length === 0 ? NO_CALLS : await traces.read(unclear, patience, signal)
  // A payer that was found by a trace before must not be lost because no trace can be read now.
  const untraced: Findings['untraced'] = new Set(
    neverTraced === undefined ? [] : [...failed].filter((txHash) => !neverTraced.has(txHash)),
  )
  const addresses = followed.factories.size === 0 ? [] : addressesIn(receipts, known)
  const stored = await repository.requestProxiesAmong(chain.chainId, addresses)
  const all = withIntermediaries(followed, [...stored, ...proxies.map(({ address }) => address)])
  const lacksTrace = (event: SeenEvent, { txHash }: TransactionReceipt) =>
    event.token === undefined && event.payer === undefined && !event.isCarried && known.get(txHash)?.kind !== 'TRACE'
  const events = receipts
    .filter(({ txHash }) => !untraced.has(txHash))
    .flatMap((receipt) =>
      readTransaction(receipt, all, known.get(receipt.txHash)).map((event) => ({
        event,
        receipt,
        lacksTrace: isKnown(event) && lacksTrace(event, receipt),
      })),
    )
  return { events, untraced }
}

const NO_CALLS: ReadCalls = { known: new Map(), failed: new Set() }

function withIntermediaries(followed: FollowedContracts, added: readonly Address[]): FollowedContracts {
  if (added.length === 0) return followed
  return { ...followed, intermediaries: new Set([...followed.intermediaries, ...added]) }
}

/** What finding the payments of one chain needs beside its logs. */
export interface FindingTools {
  readonly chain: ObservedChain
  readonly tokens: TokenDirectory
  readonly repository: DetectionRepository
  readonly market: MarketReader
  readonly traces: TraceReader
  /** How long figures are waited for while the chain is followed. */
  readonly live: Patience
}
