import type { Knex } from 'knex'
import { type Address, addressFromBytes } from '../../domain/address.ts'
import { caip2Of } from '../../domain/chain.ts'
import { formatDecimal, readStoredDecimal } from '../../domain/decimal.ts'
import { bytesToHex, type Hex } from '../../domain/hex.ts'
import type { PaymentRow } from '../../store/payment-row.ts'
import type { RefundRow } from '../../store/settle-requests.ts'
import type { EventFact } from '../rules/chain-facts.ts'
import { judgeEvent, type Verdict } from '../rules/judge-event.ts'
import { requestsOfIds, requestsOfTopics, type StoredRequest, type WalletTime } from '../sql/stored-requests.ts'
import { openLookups, rowsOf } from '../sql/stored-rows.ts'
import type { Unproven, VerifyDifference } from '../verify-report.ts'
import { compareStandings } from './compare-standings.ts'
import { keyOfFact, placeKey } from './compare-terms.ts'
import {
  type ComparedAccount,
  type Comparison,
  isGiven,
  isReadRefund,
  type Judged,
  type Page,
  UNDECIDED,
} from './compared-page.ts'
import { differencesOf } from './differences.ts'
import {
  type FieldTexts,
  inventedFee,
  paymentTexts,
  refundTexts,
  storedPaymentTexts,
  storedRefundTexts,
  unmatchedTexts,
} from './expected-rows.ts'
import { NO_TOTALS, type Totals, withAmount } from './totals.ts'

/** The result of comparing some requests. */
export interface Compared {
  readonly differences: readonly VerifyDifference[]
  readonly unproven: readonly Unproven[]
  /** The expected rows of unmatched events, by {@link unmatchedKey}. */
  readonly unmatched: ReadonlyMap<string, FieldTexts>
  /** Of the section's blocks alone. */
  readonly totals: Totals
}

export function unmatchedKey(accountId: number, txHash: string, eventIndex: number): string {
  return `${accountId} ${txHash} ${eventIndex}`
}

/**
 * Judges all events of some requests of an account, settles the requests, and compares both with what is stored.
 *
 * @param trx - a snapshot
 * @param requestIds - hexadecimal digits
 */
export async function compareRequests(
  trx: Knex,
  comparison: Comparison,
  account: ComparedAccount,
  requestIds: readonly string[],
): Promise<Compared> {
  const { page, facts, topics } = await openPage(trx, comparison, account, requestIds)
  const strays = straysOf(page, topics)
  const sharing = await requestsOfTopics(trx, account.id, [...topics, ...strays.map(({ event }) => event.topic)])
  const judged = judgeAll(page, [...facts, ...strays].toSorted(byChain), sharing)
  const counted = judged.filter(
    ({ verdict }) => verdict.kind !== 'UNMATCHED' && page.requests.has(verdict.request.requestId),
  )
  const inRange = counted.filter(({ fact }) => comparison.isInRange(fact.blockNumber))
  return {
    differences: [
      ...comparePayments(page, counted),
      ...compareRefunds(page, counted),
      ...compareExtra(page, judged),
      ...compareStandings(page, counted),
    ],
    unmatched: expectedUnmatched(account, judged, topics),
    unproven: page.unproven,
    totals: inRange.reduce(addVerdict(account.name), NO_TOTALS),
  }
}

/** Reads the stored rows of some requests, and picks the events of their topics, in the order of the chain. */
async function openPage(
  trx: Knex,
  comparison: Comparison,
  account: ComparedAccount,
  requestIds: readonly string[],
): Promise<{ page: Page; facts: readonly EventFact[]; topics: ReadonlySet<Hex> }> {
  const requests = await requestsOfIds(trx, account.id, requestIds)
  const topics = new Set(requests.flatMap(({ topic, refundTopic }) => (refundTopic ? [topic, refundTopic] : [topic])))
  const facts = [...topics].flatMap((topic) => comparison.factsOf.get(topic) ?? []).toSorted(byChain)
  const txHashes = [...new Set(facts.map(({ txHash }) => txHash))]
  const stored = await rowsOf(trx, account.id, { requestIds, txHashes })
  const { name: network, chainId } = comparison.chain
  const page: Page = {
    comparison,
    account,
    requests: new Map(requests.map((request) => [request.requestId, request])),
    stored,
    paymentAt: byPlace(stored.payments, network),
    refundAt: byPlace(stored.refunds, network),
    lookups: await openLookups(trx, account.id, { chainId: caip2Of(chainId), txHashes }),
    unproven: [],
  }
  return { page, facts, topics }
}

function expectedUnmatched(
  account: ComparedAccount,
  judged: readonly Judged[],
  topics: ReadonlySet<Hex>,
): Map<string, FieldTexts> {
  const expected = new Map<string, FieldTexts>()
  for (const { fact, verdict } of judged) {
    if (verdict.kind !== 'UNMATCHED' || !topics.has(fact.event.topic)) continue
    const key = unmatchedKey(account.id, fact.txHash, fact.event.eventIndex)
    expected.set(key, unmatchedTexts(fact, verdict.reason))
  }
  return expected
}

function byChain(a: EventFact, b: EventFact): number {
  return a.blockNumber - b.blockNumber || a.event.logIndex - b.event.logIndex
}

/** Events that are stored for a request of the page although they belong to another, by their topic. */
function straysOf({ comparison, requests, stored }: Page, topics: ReadonlySet<Hex>): EventFact[] {
  const rows = [...stored.payments, ...stored.refunds].filter(
    ({ request_id, network }) => requests.has(request_id?.toString('hex') ?? '') && network === comparison.chain.name,
  )
  return rows.flatMap(({ tx_hash, event_index }) => {
    const fact = tx_hash === null ? undefined : comparison.factAt.get(placeKey(bytesToHex(tx_hash), event_index ?? -1))
    return fact === undefined || topics.has(fact.event.topic) ? [] : [fact]
  })
}

function addVerdict(account: string) {
  return (totals: Totals, { verdict }: Judged): Totals =>
    verdict.kind === 'UNMATCHED' ? totals : withAmount(totals, { ...verdict, account, currency: verdict.token.id })
}

function byPlace<T extends Pick<PaymentRow, 'network'> & { tx_hash: Buffer | null; event_index: number | null }>(
  rows: readonly T[],
  network: string,
): Map<string, T> {
  const placed = rows.filter((row) => row.network === network && row.tx_hash !== null && row.event_index !== null)
  return new Map(placed.map((row) => [placeKey(bytesToHex(row.tx_hash as Buffer), row.event_index as number), row]))
}

/** Judges events in the order of the chain, since a refund has to go to somebody who paid before. */
function judgeAll(page: Page, facts: readonly EventFact[], sharing: readonly StoredRequest[]): Judged[] {
  const { account, comparison } = page
  const payers = new Map<string, { readonly address: Address | undefined; readonly timestampSec: number }[]>()
  const addPayer = (requestId: string, address: Address | undefined, timestampSec: number) =>
    void payers.set(requestId, [...(payers.get(requestId) ?? []), { address, timestampSec }])
  for (const row of page.stored.payments.filter((each) => isGiven(page, each) && !each.superseded)) {
    const payer = row.payer === null ? undefined : addressFromBytes(row.payer)
    addPayer(row.request_id?.toString('hex') ?? '', payer, row.timestamp.getTime() / 1_000)
  }
  return facts.map((fact) => {
    const { event, txHash, timestampSec } = fact
    const key = placeKey(txHash, event.eventIndex)
    const before = ({ requestId }: StoredRequest) =>
      (payers.get(requestId) ?? []).filter((payer) => payer.timestampSec <= timestampSec)
    const ofTopic = sharing.filter(({ topic, refundTopic }) => topic === event.topic || refundTopic === event.topic)
    const found = judgeEvent(fact, ofTopic, {
      chain: comparison.chain.name,
      tokens: comparison.tokens,
      hasPaid: (request, address) => before(request).some((payer) => payer.address === address),
      hasUnknownPayer: (request) => before(request).some((payer) => payer.address === undefined),
      isWallet: (address) =>
        account.wallets.some((wallet) => wallet.address === address && isRegistered(wallet, timestampSec)),
      accepted: account.accepted.get(key),
    })
    const verdict = keepUnprovable(page, fact, found, ofTopic)
    if (verdict.kind === 'PAYMENT') addPayer(verdict.request.requestId, payerOf(page, fact), timestampSec)
    return { fact, verdict }
  })
}

function isRegistered({ registeredAt, removedAt }: WalletTime, timestampSec: number): boolean {
  const atMs = timestampSec * 1_000
  return registeredAt.getTime() < atMs && (removedAt === undefined || removedAt.getTime() >= atMs)
}

/** The payer of what a bridge delivered is what the bridge said: this chain does not show it. */
function payerOf({ paymentAt }: Page, { payer, isCarried, txHash, event }: EventFact): Address | undefined {
  const stored = isCarried ? paymentAt.get(placeKey(txHash, event.eventIndex))?.payer : undefined
  return stored ? addressFromBytes(stored) : payer
}

/** Keeps the stored verdict where the nodes no longer have what decided it, and notes that in the report. */
function keepUnprovable(page: Page, fact: EventFact, verdict: Verdict, requests: readonly StoredRequest[]): Verdict {
  const key = keyOfFact(fact)
  const where = `event ${fact.event.eventIndex} of ${fact.txHash}`
  if (verdict.kind === 'PAYMENT' && verdict.isRateUnread) {
    page.unproven.push({
      where,
      why: 'no node has the state of its block, so the stored verdict on its rate stands',
    })
    return page.paymentAt.has(key) ? verdict : { kind: 'UNMATCHED', reason: UNDECIDED }
  }
  const refund = page.refundAt.get(key)
  if (verdict.kind === 'REFUND' && refund === undefined && isLookedUp(page, fact, 'TRACE')) {
    page.unproven.push({ where, why: 'the service still looks up who sent it', isInfo: true })
    return { kind: 'UNMATCHED', reason: UNDECIDED }
  }
  const isDoubtful = verdict.kind === 'UNMATCHED' && ['WRONG_PAYEE', 'NOT_FROM_PAYEE'].includes(verdict.reason)
  const request = requests.find(({ requestId }) => requestId === refund?.request_id.toString('hex'))
  if (!isDoubtful || fact.payerDoubt === undefined || request === undefined || fact.token === undefined) return verdict
  page.unproven.push({ where, why: 'no node traces the transaction, so the stored verdict on who sent it stands' })
  const amount = { units: fact.event.received, places: fact.token.decimals }
  return { kind: 'REFUND', request, token: fact.token, amount }
}

function isLookedUp({ lookups }: Page, { txHash }: EventFact, ...lacks: readonly string[]): boolean {
  return lookups.get(txHash)?.some((lack) => lacks.includes(lack)) ?? false
}

function comparePayments(page: Page, counted: readonly Judged[]): VerifyDifference[] {
  return counted.flatMap(({ fact, verdict }) => {
    if (verdict.kind !== 'PAYMENT') return []
    const { txHash, event, blockNumber } = fact
    const row = page.paymentAt.get(placeKey(txHash, event.eventIndex))
    const at = {
      kind: 'PAYMENT',
      account: page.account.name,
      txHash,
      eventIndex: event.eventIndex,
      blockNumber,
      requestId: verdict.request.requestId,
    } as const
    const expected = paymentTexts(page.comparison, fact, verdict, page.account.name)
    if (row === undefined) {
      const what = `${expected['amount']} ${expected['currency']} for request ${expected['requestId']}`
      return [{ ...at, field: 'row', chain: what }]
    }
    const stored = storedPaymentTexts(row)
    const isOpen = openFields(page, fact, stored)
    if (fact.payerDoubt !== undefined && expected['payer'] === undefined && stored['payer'] !== undefined) {
      const where = `event ${event.eventIndex} of ${txHash}`
      page.unproven.push({ where, why: 'no node traces the transaction, so its payer is taken as stored' })
      return differencesOf(at, stored, { ...expected, payer: stored['payer'] }, skipped(row, fact, isOpen))
    }
    const invented = row.imported ? undefined : inventedFee(row, fact)
    return [
      ...differencesOf(at, stored, expected, skipped(row, fact, isOpen)),
      ...(invented === undefined ? [] : [{ ...at, field: 'fees', stored: invented, chain: 'no Transfer of it' }]),
    ]
  })
}

/** Fields that are not known yet and that the service still looks up. */
function openFields(page: Page, fact: EventFact, stored: FieldTexts): string[] {
  const open = [
    ...(stored['gas'] === undefined && isLookedUp(page, fact, 'GAS', 'L1_FEE') ? ['gas'] : []),
    ...(stored['payer'] === undefined && isLookedUp(page, fact, 'TRACE') ? ['payer'] : []),
  ]
  const where = `event ${fact.event.eventIndex} of ${fact.txHash}`
  for (const field of open) page.unproven.push({ where, why: `the service still looks up its ${field}`, isInfo: true })
  return open
}

/** Fields that are not compared: what is looked up, what imports and bridges say, and what the chain does not show. */
function skipped(row: PaymentRow, { isCarried }: EventFact, isOpen: readonly string[]) {
  return (field: string, expected: string | undefined): boolean =>
    isOpen.includes(field) ||
    // A node that gives no gas price now does not prove a stored one wrong.
    (field === 'gas' && expected === undefined) ||
    (row.imported && (field === 'id' || expected === undefined || expected === '')) ||
    (isCarried && ['payer', 'sourceNetwork', 'sourceTxHash'].includes(field))
}

function compareRefunds(page: Page, counted: readonly Judged[]): VerifyDifference[] {
  return counted.flatMap(({ fact, verdict }) => {
    if (verdict.kind !== 'REFUND') return []
    const { txHash, event, blockNumber } = fact
    const row = page.refundAt.get(placeKey(txHash, event.eventIndex))
    const at = {
      kind: 'REFUND',
      account: page.account.name,
      txHash,
      eventIndex: event.eventIndex,
      blockNumber,
      requestId: verdict.request.requestId,
    } as const
    const expected = refundTexts(fact, verdict)
    if (row !== undefined) return differencesOf(at, storedRefundTexts(row), expected)
    const what = `${expected['amount']} ${expected['currency']} for request ${expected['requestId']}`
    return [{ ...at, field: 'row', chain: what }]
  })
}

/** Stored payments and refunds that the blocks which were read do not have. */
function compareExtra(page: Page, judged: readonly Judged[]): VerifyDifference[] {
  const verdicts = new Map(judged.map(({ fact, verdict }) => [keyOfFact(fact), verdict]))
  const isIn = (row: Pick<PaymentRow, 'request_id'>) => page.requests.has(row.request_id?.toString('hex') ?? '')
  const describe = (row: PaymentRow | RefundRow, kind: 'PAYMENT' | 'REFUND'): VerifyDifference[] => {
    if (row.tx_hash === null || row.event_index === null) return []
    const txHash = bytesToHex(row.tx_hash)
    const verdict = verdicts.get(placeKey(txHash, row.event_index))
    if (verdict?.kind === kind) return []
    const chain =
      verdict && (verdict.kind === 'UNMATCHED' ? `unmatched: ${verdict.reason}` : `a ${verdict.kind.toLowerCase()}`)
    const { event_index: eventIndex, block_number } = row
    const requestId = row.request_id?.toString('hex')
    const stored = `${readableAmount(row)} for request ${requestId}`
    const at = { kind, account: page.account.name, txHash, eventIndex, requestId, blockNumber: Number(block_number) }
    return [{ ...at, field: 'row', stored, chain }]
  }
  const { payments, refunds } = page.stored
  const readPayments = payments.filter((row) => isIn(row) && !isGiven(page, row))
  const readRefunds = refunds.filter((row) => isIn(row) && isReadRefund(page, row))
  return [
    ...readPayments.flatMap((row) => describe(row, 'PAYMENT')),
    ...readRefunds.flatMap((row) => describe(row, 'REFUND')),
  ]
}

function readableAmount({ amount, currency }: PaymentRow | RefundRow): string {
  return `${formatDecimal(readStoredDecimal(amount))} ${currency}`
}
