import { addDecimals, formatDecimal, readStoredDecimal, sumDecimals, ZERO } from '../../domain/decimal.ts'
import { bytesToHex } from '../../domain/hex.ts'
import { statusOfRank } from '../../domain/payment.ts'
import { requestStatuses } from '../../domain/payment-request.ts'
import type { PaymentRow } from '../../store/payment-row.ts'
import type { RefundRow } from '../../store/request-ledger.ts'
import type { EventFact } from '../rules/chain-facts.ts'
import {
  type LedgerPlace,
  type SettledRequest,
  type SettlingPayment,
  type SettlingRefund,
  settleRequest,
} from '../rules/settle-request.ts'
import { type StoredRequest } from '../sql/stored-requests.ts'
import type { VerifyDifference } from '../verify-report.ts'
import { keyOfFact, placeKey } from './compare-terms.ts'
import { isGiven, isReadRefund, type Judged, type Page } from './compared-page.ts'
import { differencesOf } from './differences.ts'
import { refundsText, storedStanding } from './expected-rows.ts'

/** Settles each request from the chain, from imports, and from stored rows of blocks that were not read; compares the outcome with what is stored. */
export function compareStandings(page: Page, counted: readonly Judged[]): VerifyDifference[] {
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
  const key = keyOfFact(fact)
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

/** The id stands for an imported payment that names no event. */
function keyOfRow(row: PaymentRow): string {
  return row.tx_hash === null || row.event_index === null ? row.id : placeKey(bytesToHex(row.tx_hash), row.event_index)
}

function countedOfRow(row: PaymentRow, { invoiceCurrency }: StoredRequest) {
  return readStoredDecimal(row.invoice_amount ?? (row.currency === invoiceCurrency ? row.amount : '0'))
}

/** What an import says of a payment: its status, and its refunds that are not stored as refunds of a chain. */
function importedStanding(row: PaymentRow, known: ReadonlySet<string>): SettlingPayment['imported'] {
  const own = row.refunds.filter(({ txHash, eventIndex }) => !known.has(placeKey(txHash, eventIndex ?? -1)))
  return { status: statusOfRank(row.status), returned: sumDecimals(own.map(({ amount }) => readStoredDecimal(amount))) }
}

function placeOf({ timestampSec, blockNumber, txHash, event }: EventFact): LedgerPlace {
  return { timestampSec, blockNumber, txHash, eventIndex: event.eventIndex }
}

function returningFact({ fact, verdict }: Judged): SettlingRefund[] {
  if (verdict.kind !== 'REFUND') return []
  return [{ key: keyOfFact(fact), place: placeOf(fact), final: true, amount: verdict.amount }]
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

/** Compares status and refunds of a stored payment. */
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
    requestId: row.request_id?.toString('hex'),
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
