import { addressFromBytes } from '../../domain/address.ts'
import { formatDecimal, ZERO } from '../../domain/decimal.ts'
import { bytesToHex } from '../../domain/hex.ts'
import { settledStatuses } from '../../domain/payment-request.ts'
import {
  type ChainPlace,
  decideStanding,
  type LedgerPayment,
  type LedgerRefund,
  type Standing,
} from '../../domain/standing.ts'
import type { PaymentRow } from '../../store/payment-row.ts'
import { importedReturns, toLedgerPayment, toLedgerRefund } from '../../store/settle-requests.ts'
import type { EventFact } from '../rules/chain-facts.ts'
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
    const stored = page.stored.refunds.filter((row) => row.request_id.toString('hex') === request.requestId)
    const refunds = [
      ...own.flatMap((each) => refundOfFact(page, each)),
      ...stored.filter((row) => !isReadRefund(page, row)).map(toLedgerRefund),
    ]
    const standing = decideStanding({
      expected: request.amount,
      payments: [
        ...own.flatMap((each) => paymentOfFact(page, each, refunds)),
        ...payments
          .filter((row) => isGiven(page, row) && !row.superseded)
          .map((row) => ({ ...toLedgerPayment(row, request, refunds), id: keyOfRow(row) })),
      ],
      refunds,
    })
    return [
      ...compareRequest(page, request, standing),
      ...payments.flatMap((row) => compareStanding(page, row, standing)),
    ]
  })
}

function paymentOfFact(
  { paymentAt }: Page,
  { fact, verdict }: Judged,
  refunds: readonly LedgerRefund[],
): LedgerPayment[] {
  if (verdict.kind !== 'PAYMENT') return []
  const id = keyOfFact(fact)
  const row = paymentAt.get(id)
  return [
    {
      id,
      place: placeOf(fact),
      final: true,
      status: 'CONFIRMED',
      amount: verdict.amount,
      currency: verdict.token.id,
      counted: verdict.counted,
      payer: fact.isCarried && row?.payer ? addressFromBytes(row.payer) : fact.payer,
      isToSelf: false,
      ...(row === undefined ? NOTHING_IMPORTED : importedReturns(row, refunds)),
    },
  ]
}

const NOTHING_IMPORTED = { importedRefunds: [], otherwiseReturned: ZERO }

/** The id stands for an imported payment that names no event. */
function keyOfRow(row: PaymentRow): string {
  return row.tx_hash === null || row.event_index === null ? row.id : placeKey(bytesToHex(row.tx_hash), row.event_index)
}

function placeOf({ timestampSec, blockNumber, event }: EventFact): ChainPlace {
  return {
    timestamp: new Date(timestampSec * 1_000),
    blockNumber: BigInt(blockNumber),
    logIndex: event.logIndex,
  }
}

function refundOfFact({ comparison }: Page, { fact, verdict }: Judged): LedgerRefund[] {
  if (verdict.kind !== 'REFUND') return []
  const { txHash, event } = fact
  const of = { txHash, eventIndex: event.eventIndex, network: comparison.chain.name, place: placeOf(fact) }
  const { amount, token } = verdict
  return [{ ...of, final: true, amount, currency: token.id, recipient: event.to }]
}

/** Compares status and refunds of a stored payment. */
function compareStanding(page: Page, row: PaymentRow, standing: Standing): VerifyDifference[] {
  const state = standing.payments.get(keyOfRow(row))
  if (state === undefined || (isGiven(page, row) && !row.imported)) return []
  const expected = {
    status: state.status,
    refunds: refundsText(state.refunds),
    refundedAmount: formatDecimal(state.refundedAmount),
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

function compareRequest(page: Page, request: StoredRequest, standing: Standing): VerifyDifference[] {
  const texts = {
    status: settledStatuses[request.status - 1],
    paidAmount: formatDecimal(request.paid),
    pendingAmount: formatDecimal(request.pending),
    heldAmount: formatDecimal(request.held),
  }
  const expected = {
    status: standing.status,
    paidAmount: formatDecimal(standing.paidAmount),
    pendingAmount: formatDecimal(standing.pendingAmount),
    heldAmount: formatDecimal(standing.heldAmount),
  }
  const at = { kind: 'REQUEST', account: page.account.name, requestId: request.requestId } as const
  return differencesOf(at, texts, expected)
}
