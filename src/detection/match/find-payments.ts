import type { TokenDirectory } from '../../chains/token-directory.ts'
import {
  decodeCreatedProxyLog,
  decodeFeeProxyLog,
  type FeeProxyEvent,
  type RpcLog,
} from '../../contracts/decode-events.ts'
import type { Address } from '../../domain/address.ts'
import type { Token } from '../../domain/currency.ts'
import type { Hex } from '../../domain/hex.ts'
import type { CallReader, ReadCalls } from '../read/call-reader.ts'
import type { FollowedContracts } from '../read/followed-contracts.ts'
import type { Market, MarketReader } from '../read/market.ts'
import { readTransaction, type SeenEvent, type TransactionReceipt } from '../read/read-transaction.ts'
import type { DetectionRepository, FirstPayment } from '../sql/detection-repository.ts'
import { type AccountBook, openAccountBook } from './account-book.ts'
import { buildPayment, buildRefund } from './build-payment.ts'
import type { CreatedProxy, Findings, UnmatchedEvent } from './detected.ts'
import { judgeRate } from './judge-rate.ts'
import { findPayment, type Match, matchEvent } from './match-event.ts'
import { addressesIn, needsCalls } from './native-payers.ts'

/** The chain that events are looked at for. */
export interface ObservedChain {
  /** Canonical name. */
  readonly name: string
  /** CAIP-2. */
  readonly chainId: string
  readonly native: Token
  readonly followed: FollowedContracts
}

/** What finding payments needs beside the logs. */
export interface FindingTools {
  readonly chain: ObservedChain
  readonly tokens: TokenDirectory
  readonly repository: DetectionRepository
  readonly market: MarketReader
  readonly calls: CallReader
}

/** Logs of followed contracts, with what else must be asked of the chain. */
export interface LoggedEvents {
  /** In the order of the chain. */
  readonly logs: readonly RpcLog[]
  /**
   * Reads receipts of canonical transactions; leaves out what is too large.
   *
   * @throws when one is gone, which ends the work on these logs
   */
  receipts(hashes: readonly Hex[]): Promise<TransactionReceipt[]>
  /** Seconds, of each of these blocks. */
  blockTimes(numbers: readonly number[]): Promise<ReadonlyMap<number, number>>
  /** Whether all of these transactions were read before, so that what is stored of them says nothing here. */
  readonly areReread?: boolean
}

/** An event of a known topic, for one account that knows it. */
interface Judged {
  readonly accountId: number
  readonly event: SeenEvent
  readonly receipt: TransactionReceipt
  readonly match: Match
}

/**
 * Finds out what logs mean to whom: payments and refunds by account, and what is neither, with the reason. Only transactions
 * of which somebody knows a topic cost a receipt.
 *
 * @param onlyAccount - look for this account alone, and leave unknown topics aside
 */
export async function findPayments(
  tools: FindingTools,
  logged: LoggedEvents,
  signal?: AbortSignal,
  onlyAccount?: number,
): Promise<Findings> {
  const { contracts } = tools.chain.followed
  const seen = logged.logs.flatMap(toSeenLog).filter(({ event }) => contracts.has(event.emitter))
  const topics = [...new Set(seen.map(({ event }) => event.topic))]
  const directory = await tools.repository.accountsOfTopics(topics)
  const isKnown = ({ event }: SeenLog) => directory.has(event.topic)
  const txHashes = [...new Set(seen.filter(isKnown).map(({ txHash }) => txHash))]
  const receipts = await logged.receipts(txHashes)
  const read = new Set(receipts.map(({ txHash }) => txHash))
  const unread = seen.filter((log) => isKnown(log) && !read.has(log.txHash))
  const unknown = onlyAccount === undefined ? seen.filter((log) => !isKnown(log)) : []
  const times = await logged.blockTimes([
    ...new Set([...unknown, ...unread, ...receipts].map(({ blockNumber }) => blockNumber)),
  ])
  const proxies = findCreatedProxies(logged.logs, tools.chain.followed)
  const areReread = logged.areReread ?? false
  const { events, untraced } = await readEvents(tools, { receipts, proxies, directory, areReread }, signal)
  const seenBy = await eventsByAccount(tools, { events, directory, onlyAccount, areReread })
  const market = await tools.market.read(
    seenBy.flatMap((seen) => findPaymentsOf(tools, seen, times)),
    signal,
  )
  const judged = seenBy.flatMap((seen) => judgeEvents(tools, seen, { times, market }))
  const accounts = await buildAll(tools, judged, { times, market })
  const unmatched = [
    ...judged.flatMap((entry) => toUnmatched(entry, times)),
    ...unknown.map((log) => toUnread(log, 'UNKNOWN_TOPIC', times)),
    ...unread.map((log) => toUnread(log, 'RECEIPT_TOO_LARGE', times)),
  ]
  return { accounts, unmatched, proxies, directory, untraced }
}

interface SeenLog {
  readonly event: FeeProxyEvent
  readonly txHash: Hex
  readonly blockNumber: number
  readonly log: RpcLog
}

function toSeenLog(log: RpcLog): SeenLog[] {
  const event = decodeFeeProxyLog(log)
  return event === undefined
    ? []
    : [{ event, txHash: log.transactionHash as Hex, blockNumber: Number(log.blockNumber), log }]
}

/** A payment event of a transaction of which somebody knows a topic. */
interface ReadEvent {
  readonly event: SeenEvent
  readonly receipt: TransactionReceipt
}

interface Reading {
  /** In the order of the chain. */
  readonly receipts: readonly TransactionReceipt[]
  /** Made in the same blocks. */
  readonly proxies: readonly CreatedProxy[]
  readonly directory: ReadonlyMap<Hex, readonly number[]>
  readonly areReread: boolean
}

interface ReadEvents {
  readonly events: readonly ReadEvent[]
  readonly untraced: ReadonlySet<Hex>
}

/** Reads the events of transactions, with what only their calls tell: who paid in coins through a contract. */
async function readEvents(
  { chain, repository, calls }: FindingTools,
  { receipts, proxies, directory, areReread }: Reading,
  signal: AbortSignal | undefined,
): Promise<ReadEvents> {
  const { followed } = chain
  const isKnown = ({ topic }: FeeProxyEvent) => directory.has(topic)
  const unclear = receipts.filter((receipt) => needsCalls(receipt, followed, isKnown))
  const { known, failed } = unclear.length === 0 ? NO_CALLS : await calls.read(unclear, signal)
  // What an earlier look has learnt from a trace must not be undone because there is none at this moment.
  const untraced: ReadonlySet<Hex> = areReread ? failed : new Set()
  const lookedAt = followed.factories.size === 0 ? [] : addressesIn(receipts, known)
  const stored = await repository.requestProxiesAmong(chain.chainId, lookedAt)
  const made = [...stored, ...proxies.map(({ address }) => address)]
  const all = made.length === 0 ? followed : withIntermediaries(followed, made)
  const events = receipts
    .filter(({ txHash }) => !untraced.has(txHash))
    .flatMap((receipt) => readTransaction(receipt, all, known.get(receipt.txHash)).map((event) => ({ event, receipt })))
  return { events, untraced }
}

const NO_CALLS: ReadCalls = { known: new Map(), failed: new Set() }

function withIntermediaries(followed: FollowedContracts, added: readonly Address[]): FollowedContracts {
  return { ...followed, intermediaries: new Set([...followed.intermediaries, ...added]) }
}

function findCreatedProxies(logs: readonly RpcLog[], { factories }: FollowedContracts): CreatedProxy[] {
  return logs.flatMap((log) => {
    const address = factories.has(log.address.toLowerCase() as Address) ? decodeCreatedProxyLog(log) : undefined
    return address === undefined ? [] : [{ address, blockNumber: Number(log.blockNumber) }]
  })
}

interface Known {
  /** In the order of the chain. */
  readonly events: readonly ReadEvent[]
  readonly directory: ReadonlyMap<Hex, readonly number[]>
  readonly onlyAccount: number | undefined
  readonly areReread: boolean
}

/** Events whose topic an account knows, in the order of the chain, with what it has stored. */
interface AccountEvents {
  readonly accountId: number
  readonly events: readonly ReadEvent[]
  readonly book: AccountBook
}

async function eventsByAccount(
  { chain, repository }: FindingTools,
  { events, directory, onlyAccount, areReread }: Known,
): Promise<AccountEvents[]> {
  const knownBy = ({ topic }: SeenEvent) => directory.get(topic) ?? []
  const accountIds = onlyAccount === undefined ? new Set(events.flatMap(({ event }) => knownBy(event))) : [onlyAccount]
  const seen: AccountEvents[] = []
  for (const accountId of accountIds) {
    const own = events.filter(({ event }) => knownBy(event).includes(accountId))
    const book = await openAccountBook(repository, {
      accountId,
      chainId: chain.chainId,
      events: own.map(({ event, receipt }) => ({ event, txHash: receipt.txHash })),
      areReread,
    })
    seen.push({ accountId, events: own, book })
  }
  return seen
}

interface Circumstances {
  readonly times: ReadonlyMap<number, number>
  readonly market: Market
}

function blockOf(times: ReadonlyMap<number, number>, { blockNumber }: TransactionReceipt): FirstPayment {
  return { timestampSec: timeOf(times, blockNumber), blockNumber }
}

/** Events that are payments unless the rate of their conversion is wrong. */
function findPaymentsOf(
  { chain, tokens }: FindingTools,
  { events, book }: AccountEvents,
  times: ReadonlyMap<number, number>,
) {
  return events.flatMap(({ event, receipt }) => {
    const match = findPayment(event, book.requestsOf(event.topic), { chain: chain.name, tokens })
    return match === undefined ? [] : [{ match, event, ...blockOf(times, receipt) }]
  })
}

function judgeEvents(
  { chain, tokens }: FindingTools,
  { accountId, events, book }: AccountEvents,
  { times, market }: Circumstances,
): Judged[] {
  return events.map(({ event, receipt }) => {
    const at = blockOf(times, receipt)
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
    if (match.kind === 'PAYMENT') book.addPayment(match.request, book.payerOf(receipt.txHash, event))
    else if (matched.kind === 'PAYMENT') book.keepPayment(matched.request, receipt.txHash, event)
    return { accountId, event, receipt, match }
  })
}

async function buildAll(
  { chain, repository }: FindingTools,
  judged: readonly Judged[],
  { times, market }: Circumstances,
): Promise<Findings['accounts']> {
  const counted = judged.filter(({ match }) => match.kind !== 'UNMATCHED')
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
      chainId: chain.chainId,
      native: chain.native,
      match,
      event,
      receipt,
      timestamp,
      tokenPrice: market.priceAt(match.token, receipt.blockNumber),
      nativePrice: market.priceAt(chain.native, receipt.blockNumber),
    })
    account.payments.push(payment)
  }
  return accounts
}

function timeOf(times: ReadonlyMap<number, number>, blockNumber: number): number {
  const time = times.get(blockNumber)
  if (time === undefined) throw new Error(`the time of block ${blockNumber} was not read`)
  return time
}

function toUnmatched(
  { accountId, event, receipt, match }: Judged,
  times: ReadonlyMap<number, number>,
): UnmatchedEvent[] {
  if (match.kind !== 'UNMATCHED') return []
  return [
    {
      accountId,
      reason: match.reason,
      topic: event.topic,
      txHash: receipt.txHash,
      eventIndex: event.eventIndex,
      blockNumber: receipt.blockNumber,
      timestamp: new Date(timeOf(times, receipt.blockNumber) * 1_000),
      event: { ...describeEvent(event), ...match.detail },
    },
  ]
}

/**
 * An event whose transaction is not read: of a topic that nobody knows, or because it is too large. Its index among all events of
 * the transaction would take a receipt; the log's own, unique as well, stands for it until the transaction is read.
 */
function toUnread(
  { event, txHash, blockNumber, log }: SeenLog,
  reason: 'UNKNOWN_TOPIC' | 'RECEIPT_TOO_LARGE',
  times: ReadonlyMap<number, number>,
): UnmatchedEvent {
  return {
    accountId: 0,
    reason,
    topic: event.topic,
    txHash,
    eventIndex: Number(log.logIndex),
    blockNumber,
    timestamp: new Date(timeOf(times, blockNumber) * 1_000),
    event: describeEvent(event),
  }
}

function describeEvent(event: FeeProxyEvent & Partial<SeenEvent>): Record<string, string> {
  const { emitter, token, to, amount, feeAmount, feeAddress, payer, paidFrom, conversion } = event
  return {
    emitter,
    ...(token === undefined ? {} : { token }),
    to,
    amount: amount.toString(),
    feeAmount: feeAmount.toString(),
    feeAddress,
    ...(payer === undefined ? {} : { payer }),
    ...(paidFrom === undefined ? {} : { paidFrom }),
    ...(conversion === undefined
      ? {}
      : { invoiceAmount: conversion.amount.toString(), invoiceCurrency: conversion.currency }),
  }
}
