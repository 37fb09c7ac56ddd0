import { addressFromBytes } from '../../domain/address.ts'
import { formatDecimal, readStoredDecimal, subtractDecimals, sumDecimals, ZERO } from '../../domain/decimal.ts'
import { bytesToHex } from '../../domain/hex.ts'
import { type PaymentRefund, statusOfRank } from '../../domain/payment.ts'
import { settledStatuses } from '../../domain/payment-request.ts'
import type { PaymentRow } from '../../store/payment-row.ts'
import type { RefundRow } from '../../store/settle-requests.ts'
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
      ...payments
        .filter((row) => isGiven(page, row) && !row.superseded)
        .map((row) => settlingRow(row, request, refundKeys(refunds))),
    ]
    const returned = [
      ...own.flatMap(returningFact),
      ...refunds.filter((row) => !isReadRefund(page, row)).map(returningRow),
    ]
    const settled = settleRequest(request.amount, settling, returned)
    return [
      ...compareRequest(page, request, settled),
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
  const payment = {
    key,
    place: placeOf(fact),
    final: true,
    amount: verdict.amount,
    currency: verdict.token.id,
    counted: verdict.counted,
    payer: fact.isCarried && row?.payer ? addressFromBytes(row.payer) : fact.payer,
    isVoid: false,
    isFailed: false,
  }
  return [{ ...payment, ...(row === undefined ? NOTHING_IMPORTED : importedReturns(row, new Set(refundAt.keys()))) }]
}

const NOTHING_IMPORTED = { importedRefunds: [], returnedBeside: ZERO }

function settlingRow(row: PaymentRow, request: StoredRequest, known: ReadonlySet<string>): SettlingPayment {
  const payer = row.payer === null ? undefined : addressFromBytes(row.payer)
  const payee = row.payee === null ? request.payee : addressFromBytes(row.payee)
  const isFailed = statusOfRank(row.status) === 'FAILED'
  return {
    key: keyOfRow(row),
    place: placeOfRow(row),
    final: row.final,
    amount: readStoredDecimal(row.amount),
    currency: row.currency,
    counted: readStoredDecimal(row.invoice_amount ?? (row.currency === request.invoiceCurrency ? row.amount : '0')),
    payer,
    isVoid: isFailed || (!row.detected && payer === payee),
    isFailed,
    ...importedReturns(row, known),
  }
}

function placeOfRow({ timestamp, block_number, log_index }: PaymentRow | RefundRow): LedgerPlace {
  const timestampSec = timestamp.getTime() / 1_000
  return { timestampSec, blockNumber: Number(block_number ?? -1), logIndex: log_index ?? -1 }
}

/** The id stands for an imported payment that names no event. */
function keyOfRow(row: PaymentRow): string {
  return row.tx_hash === null || row.event_index === null ? row.id : placeKey(bytesToHex(row.tx_hash), row.event_index)
}

/** The refunds that an import says of a payment, without those that the chain shows. */
function importedRefunds(row: PaymentRow, known: ReadonlySet<string>): PaymentRefund[] {
  const isOnChain = ({ txHash, eventIndex }: PaymentRefund) =>
    eventIndex === undefined
      ? [...known].some((key) => key.startsWith(`${txHash} `))
      : known.has(placeKey(txHash, eventIndex))
  return row.refunds.filter((entry) => entry.imported === true && !isOnChain(entry))
}

function importedReturns(row: PaymentRow, known: ReadonlySet<string>) {
  const listed = sumDecimals(row.refunds.map(({ amount }) => readStoredDecimal(amount)))
  const beside = subtractDecimals(readStoredDecimal(row.refunded_amount), listed)
  const returning = importedRefunds(row, known).filter(({ excess }) => excess !== true)
  return {
    importedRefunds: returning.map(({ amount, timestamp, recipient }) => ({
      amount: readStoredDecimal(amount),
      timestampSec: timestamp === undefined ? undefined : Date.parse(timestamp) / 1_000,
      recipient,
    })),
    returnedBeside: row.imported && beside.units > 0n ? beside : ZERO,
  }
}

function placeOf({ timestampSec, blockNumber, event }: EventFact): LedgerPlace {
  return { timestampSec, blockNumber, logIndex: event.logIndex }
}

function returningFact({ fact, verdict }: Judged): SettlingRefund[] {
  if (verdict.kind !== 'REFUND') return []
  const { amount, token } = verdict
  const place = placeOf(fact)
  return [{ key: keyOfFact(fact), place, final: true, amount, currency: token.id, recipient: fact.event.to }]
}

function returningRow(row: RefundRow): SettlingRefund {
  return {
    key: placeKey(bytesToHex(row.tx_hash), row.event_index),
    place: placeOfRow(row),
    final: row.final,
    amount: readStoredDecimal(row.amount),
    currency: row.currency,
    recipient: row.recipient === null ? undefined : addressFromBytes(row.recipient),
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
  const laid = state.refunds.map(({ key, amount, excess }) => {
    const [txHash = '', eventIndex] = key.split(' ')
    return { txHash, amount, eventIndex: Number(eventIndex), excess }
  })
  const all = [...importedRefunds(row, known), ...laid]
  const { returnedBeside } = importedReturns(row, known)
  const returned = sumDecimals([returnedBeside, ...all.map(({ amount }) => readStoredDecimal(amount))])
  const expected = {
    status: state.status,
    refunds: refundsText(all),
    refundedAmount: formatDecimal(returned),
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

function compareRequest(page: Page, request: StoredRequest, settled: SettledRequest): VerifyDifference[] {
  const texts = {
    status: settledStatuses[request.status - 1],
    paidAmount: formatDecimal(request.paid),
    pendingAmount: formatDecimal(request.pending),
    heldAmount: formatDecimal(request.held),
  }
  const expected = {
    status: settled.status,
    paidAmount: settled.paid,
    pendingAmount: settled.pending,
    heldAmount: settled.held,
  }
  const at = { kind: 'REQUEST', account: page.account.name, requestId: request.requestId } as const
  return differencesOf(at, texts, expected)
}
