import type { Knex } from 'knex'
import type { Account } from '../domain/account.ts'
import { type Address, addressFromBytes } from '../domain/address.ts'
import { caip2Of } from '../domain/chain.ts'
import { addDecimals, formatDecimal, readStoredDecimal, sumDecimals, ZERO } from '../domain/decimal.ts'
import { bytesToHex, type Hex } from '../domain/hex.ts'
import { statusOfRank } from '../domain/payment.ts'
import { requestStatuses } from '../domain/payment-request.ts'
import type { PaymentRow } from '../store/payment-row.ts'
import type { RefundRow } from '../store/request-ledger.ts'
import type { EventFact } from './chain-facts.ts'
import { differencesOf } from './differences.ts'
import {
  type FieldTexts,
  inventedFee,
  paymentTexts,
  type RowChain,
  refundsText,
  refundTexts,
  storedPaymentTexts,
  storedRefundTexts,
  storedStanding,
  unmatchedTexts,
} from './expected-rows.ts'
import { judgeEvent, type Verdict } from './judge-event.ts'
import {
  type LedgerPlace,
  type SettledRequest,
  type SettlingPayment,
  type SettlingRefund,
  settleRequest,
} from './settle-request.ts'
import { requestsOfIds, requestsOfTopics, type StoredRequest, type WalletTime } from './sql/stored-requests.ts'
import { openLookups, rowsOf, type StoredRows } from './sql/stored-rows.ts'
import type { Unproven, VerifyDifference } from './verify-report.ts'

/** What was read of the chain, and what an account's rows are compared by. */
export interface Comparison extends RowChain {
  /** Facts by topic, in the order of the chain. */
  readonly factsOf: ReadonlyMap<Hex, readonly EventFact[]>
  /** Whether the events of a block were read and proved. What is stored of other blocks is taken as given. */
  isRead(blockNumber: number): boolean
}

/** An account and what applies to all of its requests. */
export interface ComparedAccount extends Account {
  readonly wallets: readonly WalletTime[]
  /** By transaction hash and event index. */
  readonly accepted: ReadonlyMap<string, 'PAYMENT' | 'REFUND'>
}

/** What comparing some requests came to. */
export interface Compared {
  readonly differences: readonly VerifyDifference[]
  readonly unproven: readonly Unproven[]
  /** What the rows of unmatched events must hold, by {@link unmatchedKey}. */
  readonly unmatched: ReadonlyMap<string, FieldTexts>
  readonly payments: number
  readonly refunds: number
}

interface Judged {
  readonly fact: EventFact
  readonly verdict: Verdict
}

/** The page of requests that is compared. */
interface Page {
  readonly comparison: Comparison
  readonly account: ComparedAccount
  /** By id. */
  readonly requests: ReadonlyMap<string, StoredRequest>
  readonly stored: StoredRows
  readonly paymentAt: ReadonlyMap<string, PaymentRow>
  readonly refundAt: ReadonlyMap<string, RefundRow>
  /** What the service still looks up, by transaction hash. */
  readonly lookups: ReadonlyMap<string, readonly string[]>
  readonly unproven: Unproven[]
}

/** Names an event of a chain. */
function placeKey(txHash: string, eventIndex: number): string {
  return `${txHash} ${eventIndex}`
}

export function unmatchedKey(accountId: number, txHash: string, eventIndex: number): string {
  return `${accountId} ${txHash} ${eventIndex}`
}

/**
 * Judges all events of some requests of an account anew, settles the requests, and compares with what is stored.
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
  const requests = await requestsOfIds(trx, account.id, requestIds)
  const topics = new Set(requests.flatMap(({ topic, refundTopic }) => (refundTopic ? [topic, refundTopic] : [topic])))
  const sharing = await requestsOfTopics(trx, account.id, [...topics])
  const facts = [...topics]
    .flatMap((topic) => comparison.factsOf.get(topic) ?? [])
    .toSorted((a, b) => a.blockNumber - b.blockNumber || a.event.logIndex - b.event.logIndex)
  const txHashes = [...new Set(facts.map(({ txHash }) => txHash))]
  const stored = await rowsOf(trx, account.id, { requestIds, txHashes })
  const network = comparison.chain.name
  const page: Page = {
    comparison,
    account,
    requests: new Map(requests.map((request) => [request.requestId, request])),
    stored,
    paymentAt: byPlace(stored.payments, network),
    refundAt: byPlace(stored.refunds, network),
    lookups: await openLookups(trx, account.id, { chainId: caip2Of(comparison.chain.chainId), txHashes }),
    unproven: [],
  }
  const judged = judgeAll(page, facts, sharing)
  const counted = judged.filter(
    ({ verdict }) => verdict.kind !== 'UNMATCHED' && page.requests.has(verdict.request.requestId),
  )
  const differences = [
    ...comparePayments(page, counted),
    ...compareRefunds(page, counted),
    ...compareExtra(page, judged),
    ...compareStandings(page, counted),
  ]
  const unmatched = new Map(
    judged.flatMap(({ fact, verdict }) =>
      verdict.kind === 'UNMATCHED'
        ? [
            [
              unmatchedKey(account.id, fact.txHash, fact.event.eventIndex),
              unmatchedTexts(fact, verdict.reason),
            ] as const,
          ]
        : [],
    ),
  )
  const numberOf = (kind: Verdict['kind']) => counted.filter(({ verdict }) => verdict.kind === kind).length
  return { differences, unproven: page.unproven, unmatched, payments: numberOf('PAYMENT'), refunds: numberOf('REFUND') }
}

function byPlace<T extends Pick<PaymentRow, 'network'> & { tx_hash: Buffer | null; event_index: number | null }>(
  rows: readonly T[],
  network: string,
): Map<string, T> {
  const placed = rows.filter((row) => row.network === network && row.tx_hash !== null && row.event_index !== null)
  return new Map(placed.map((row) => [placeKey(bytesToHex(row.tx_hash as Buffer), row.event_index as number), row]))
}

/** Judges events in the order of the chain, since who may get a refund depends on who paid before. */
function judgeAll(page: Page, facts: readonly EventFact[], sharing: readonly StoredRequest[]): Judged[] {
  const { account, comparison } = page
  const payers = new Map<string, { readonly address: Address | undefined; readonly timestampSec: number }[]>()
  const addPayer = (requestId: string, address: Address | undefined, timestampSec: number) =>
    void payers.set(requestId, [...(payers.get(requestId) ?? []), { address, timestampSec }])
  for (const row of page.stored.payments.filter((each) => isGiven(page, each))) {
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
    const verdict = takeAsGiven(page, fact, found, ofTopic)
    if (verdict.kind === 'PAYMENT') addPayer(verdict.request.requestId, payerOf(page, fact), timestampSec)
    return { fact, verdict }
  })
}

function isRegistered({ registeredAt, removedAt }: WalletTime, timestampSec: number): boolean {
  const atMs = timestampSec * 1_000
  return registeredAt.getTime() < atMs && (removedAt === undefined || removedAt.getTime() >= atMs)
}

/** A bridge's payer is what the bridge said; no chain tells it. */
function payerOf({ paymentAt }: Page, { payer, isCarried, txHash, event }: EventFact): Address | undefined {
  const stored = isCarried ? paymentAt.get(placeKey(txHash, event.eventIndex))?.payer : undefined
  return stored ? addressFromBytes(stored) : payer
}

/** Where the nodes no longer tell what decided at the time, the stored verdict stands, and the report says so. */
function takeAsGiven(page: Page, fact: EventFact, verdict: Verdict, requests: readonly StoredRequest[]): Verdict {
  const key = placeKey(fact.txHash, fact.event.eventIndex)
  const where = `event ${fact.event.eventIndex} of ${fact.txHash}`
  if (verdict.kind === 'PAYMENT' && verdict.isRateUnread) {
    page.unproven.push({
      where,
      why: 'no node has the state of its block, so the rate of the conversion is taken as stored',
    })
    return page.paymentAt.has(key) ? verdict : { kind: 'UNMATCHED', reason: UNDECIDED }
  }
  const refund = page.refundAt.get(key)
  if (verdict.kind === 'REFUND' && refund === undefined && isLookedUp(page, fact, 'TRACE')) {
    page.unproven.push({ where, why: 'the service still looks up whose coins went back', isTold: true })
    return { kind: 'UNMATCHED', reason: UNDECIDED }
  }
  const isDoubtful = verdict.kind === 'UNMATCHED' && ['WRONG_PAYEE', 'NOT_FROM_PAYEE'].includes(verdict.reason)
  const request = requests.find(({ requestId }) => requestId === refund?.request_id.toString('hex'))
  if (!isDoubtful || fact.payerDoubt === undefined || request === undefined || fact.token === undefined) return verdict
  page.unproven.push({ where, why: 'no node traces the transaction, so whose coins went back is taken as stored' })
  const amount = { units: fact.event.received, places: fact.token.decimals }
  return { kind: 'REFUND', request, token: fact.token, amount }
}

/** Stands for whatever reason is stored. */
export const UNDECIDED = 'undecided'

function isLookedUp({ lookups }: Page, { txHash }: EventFact, ...lacks: readonly string[]): boolean {
  return lookups.get(txHash)?.some((lack) => lacks.includes(lack)) ?? false
}

/** Whether a stored payment is no fact that was read again: imported alone, of another chain, or of a block that was not read. */
function isGiven({ comparison }: Page, { detected, network, block_number }: PaymentRow): boolean {
  return (
    !detected || network !== comparison.chain.name || block_number === null || !comparison.isRead(Number(block_number))
  )
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
    } as const
    const expected = paymentTexts(page.comparison, fact, verdict, page.account.name)
    if (row === undefined) {
      const what = `${expected['amount']} ${expected['currency']} for request ${expected['requestId']}`
      return [{ ...at, requestId: expected['requestId'], field: 'row', chain: what }]
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
  for (const field of open) page.unproven.push({ where, why: `the service still looks up its ${field}`, isTold: true })
  return open
}

/** An imported payment keeps its id and what the chain does not tell; a bridge tells payer and source. */
function skipped(row: PaymentRow, { isCarried }: EventFact, isOpen: readonly string[]) {
  return (field: string, expected: string | undefined): boolean =>
    isOpen.includes(field) ||
    // A node that tells no gas price now proves nothing against one that did.
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
    } as const
    const expected = refundTexts(fact, verdict)
    if (row !== undefined) return differencesOf(at, storedRefundTexts(row), expected)
    const what = `${expected['amount']} ${expected['currency']} for request ${expected['requestId']}`
    return [{ ...at, requestId: expected['requestId'], field: 'row', chain: what }]
  })
}

/** Stored payments and refunds of blocks that were read, of which the chain knows nothing. */
function compareExtra(page: Page, judged: readonly Judged[]): VerifyDifference[] {
  const verdicts = new Map(judged.map(({ fact, verdict }) => [placeKey(fact.txHash, fact.event.eventIndex), verdict]))
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

function isReadRefund({ comparison }: Page, { network, block_number }: RefundRow): boolean {
  return network === comparison.chain.name && comparison.isRead(Number(block_number))
}

/** Settles each request by what the chain says, what was imported, and what is stored of blocks that were not read. */
function compareStandings(page: Page, counted: readonly Judged[]): VerifyDifference[] {
  return [...page.requests.values()].flatMap((request) => {
    const own = counted.filter(
      ({ verdict }) => verdict.kind !== 'UNMATCHED' && verdict.request.requestId === request.requestId,
    )
    const payments = page.stored.payments.filter((row) => row.request_id?.toString('hex') === request.requestId)
    const refunds = page.stored.refunds.filter((row) => row.request_id.toString('hex') === request.requestId)
    const settling = [
      ...own.flatMap((each) => settlingFact(page, each)),
      ...payments.filter((row) => isGiven(page, row)).map((row) => settlingRow(row, request, refundKeys(refunds))),
    ]
    const returned = [
      ...own.flatMap(returningFact),
      ...refunds.filter((row) => !isReadRefund(page, row)).map(returningRow),
    ]
    const settled = settleRequest(request.amount, settling, returned)
    return [
      ...compareRequest(page, request, settled, { payments, refunds }),
      ...payments.flatMap((row) => compareStanding(page, row, settled, refundKeys(refunds))),
    ]
  })
}

function refundKeys(refunds: readonly RefundRow[]): Set<string> {
  return new Set(refunds.map((row) => placeKey(bytesToHex(row.tx_hash), row.event_index)))
}

function settlingFact({ paymentAt, refundAt }: Page, { fact, verdict }: Judged): SettlingPayment[] {
  if (verdict.kind !== 'PAYMENT') return []
  const key = placeKey(fact.txHash, fact.event.eventIndex)
  const row = paymentAt.get(key)
  const imported = row?.imported ? importedStanding(row, new Set(refundAt.keys())) : undefined
  return [{ key, place: placeOf(fact), final: true, amount: verdict.amount, counted: verdict.counted, imported }]
}

function settlingRow(row: PaymentRow, request: StoredRequest, known: ReadonlySet<string>): SettlingPayment {
  return {
    key: keyOfRow(row),
    place: {
      timestampSec: row.timestamp.getTime() / 1_000,
      blockNumber: Number(row.block_number ?? 0),
      txHash: row.tx_hash === null ? '' : bytesToHex(row.tx_hash),
      eventIndex: row.event_index ?? 0,
    },
    final: row.final,
    amount: readStoredDecimal(row.amount),
    counted: countedOfRow(row, request),
    imported: row.imported ? importedStanding(row, known) : undefined,
  }
}

/** A payment that names no event is known by its id. */
function keyOfRow(row: PaymentRow): string {
  return row.tx_hash === null || row.event_index === null ? row.id : placeKey(bytesToHex(row.tx_hash), row.event_index)
}

function countedOfRow(row: PaymentRow, { invoiceCurrency }: StoredRequest) {
  return readStoredDecimal(row.invoice_amount ?? (row.currency === invoiceCurrency ? row.amount : '0'))
}

/** What an import says of a payment: its status, and refunds that are not known from the chain. */
function importedStanding(row: PaymentRow, known: ReadonlySet<string>): SettlingPayment['imported'] {
  const own = row.refunds.filter(({ txHash, eventIndex }) => !known.has(placeKey(txHash, eventIndex ?? -1)))
  return { status: statusOfRank(row.status), returned: sumDecimals(own.map(({ amount }) => readStoredDecimal(amount))) }
}

function placeOf({ timestampSec, blockNumber, txHash, event }: EventFact): LedgerPlace {
  return { timestampSec, blockNumber, txHash, eventIndex: event.eventIndex }
}

function returningFact({ fact, verdict }: Judged): SettlingRefund[] {
  if (verdict.kind !== 'REFUND') return []
  return [
    { key: placeKey(fact.txHash, fact.event.eventIndex), place: placeOf(fact), final: true, amount: verdict.amount },
  ]
}

function returningRow(row: RefundRow): SettlingRefund {
  const txHash = bytesToHex(row.tx_hash)
  const place = { txHash, eventIndex: row.event_index, blockNumber: Number(row.block_number) }
  return {
    key: placeKey(txHash, row.event_index),
    place: { ...place, timestampSec: row.timestamp.getTime() / 1_000 },
    final: row.final,
    amount: readStoredDecimal(row.amount),
  }
}

/** Status and refunds of a stored payment. Those that are not final by then are left alone. */
function compareStanding(
  page: Page,
  row: PaymentRow,
  settled: SettledRequest,
  known: ReadonlySet<string>,
): VerifyDifference[] {
  const state = settled.payments.get(keyOfRow(row))
  if (state === undefined || (isGiven(page, row) && !row.imported)) return []
  const laid = state.refunds.map(({ key, amount }) => {
    const [txHash = '', eventIndex] = key.split(' ')
    return { txHash, amount, eventIndex: Number(eventIndex) }
  })
  const own = row.imported ? row.refunds.filter((each) => !known.has(placeKey(each.txHash, each.eventIndex ?? -1))) : []
  const all = [...own, ...laid]
  const expected = {
    status: state.status,
    refunds: refundsText(all),
    refundedAmount: formatDecimal(sumDecimals(all.map(({ amount }) => readStoredDecimal(amount)))),
    statusHistory: state.status,
  }
  const at = {
    kind: 'PAYMENT',
    account: page.account.name,
    txHash: row.tx_hash === null ? undefined : bytesToHex(row.tx_hash),
    eventIndex: row.event_index ?? undefined,
    blockNumber: row.block_number === null ? undefined : Number(row.block_number),
  } as const
  return differencesOf(at, storedStanding(row), expected)
}

function compareRequest(
  page: Page,
  request: StoredRequest,
  settled: SettledRequest,
  stored: { readonly payments: readonly PaymentRow[]; readonly refunds: readonly RefundRow[] },
): VerifyDifference[] {
  const counting = stored.payments.filter((row) => statusOfRank(row.status) !== 'FAILED')
  const sumOf = (rows: readonly PaymentRow[]) => sumDecimals(rows.map((row) => countedOfRow(row, request)))
  const paid = sumOf(counting.filter(({ final }) => final))
  const pending = sumOf(counting.filter(({ final }) => !final))
  const surplus = minus(minus(addDecimals(paid, pending), request.amount), request.surplusReturned)
  const texts = {
    status: requestStatuses[request.status - 1],
    paidAmount: formatDecimal(paid),
    pendingAmount: formatDecimal(pending),
    outstandingAmount: formatDecimal(notNegative(minus(request.amount, addDecimals(paid, pending)))),
    overpaidAmount: formatDecimal(notNegative(surplus)),
    surplusReturned: formatDecimal(request.surplusReturned),
  }
  const expected = {
    status: settled.status,
    paidAmount: settled.paid,
    pendingAmount: settled.pending,
    outstandingAmount: settled.outstanding,
    overpaidAmount: settled.overpaid,
    surplusReturned: settled.surplusReturned,
  }
  const at = { kind: 'REQUEST', account: page.account.name, requestId: request.requestId } as const
  return differencesOf(at, texts, expected)
}

const minus = (a: typeof ZERO, b: typeof ZERO) => addDecimals(a, { units: -b.units, places: b.places })
const notNegative = (value: typeof ZERO) => (value.units > 0n ? value : ZERO)
