import type { Knex } from 'knex'
import { addressFromBytes, formatAddress } from '../../domain/address.ts'
import { trimNumeric } from '../../domain/decimal.ts'
import { bytesToHex, type Hex } from '../../domain/hex.ts'
import { statusOfRank } from '../../domain/payment.ts'
import type { PaymentRow } from '../../store/payment-row.ts'
import type { RefundRow } from '../../store/request-ledger.ts'
import type { Findings } from '../match/detected.ts'
import type { UnmatchedReason } from '../match/match-event.ts'
import { eventKeyOf, placeKeyOf } from '../sql/payment-rows.ts'
import type { Corrected } from '../sql/payment-writer.ts'
import { nextRechecked, type RecheckedRequest } from '../sql/recheck-repository.ts'
import { type ReplayChain, readAgain } from './replay.ts'

/** What is looked at again. */
export interface RecheckTerms {
  readonly accountId: number
  /** Only payments and refunds in blocks before then, which may be by older rules; unmatched events of any time. */
  readonly before: Date
  /** Begins behind this request; '' for the first. */
  readonly after: string
  /** Whether nothing is written. */
  readonly isTrial: boolean
  readonly signal?: AbortSignal | undefined
}

/** Something stored that was not what the rules say. */
export interface RecheckChange {
  readonly requestId: string
  readonly what: 'payment' | 'refund'
  /** Of a payment its id; of a refund `transaction:event`. */
  readonly id: string
  /** Such as `REFUNDED -> CONFIRMED`, `removed: NOT_FROM_PAYEE`. */
  readonly change: string
}

/** A part that is done. */
export interface RecheckStep {
  /** The last request that was looked at: where to go on behind. */
  readonly requestId: string
  readonly requests: number
  /** That were read again. */
  readonly transactions: number
  /** That the node does not have, or could not tell. */
  readonly unread: readonly Hex[]
  readonly changes: readonly RecheckChange[]
}

const REQUESTS_A_PAGE = 500
const TRANSACTIONS_A_BATCH = 200

/**
 * Looks again at the transactions of an account's payments, refunds and unmatched events on a chain, and makes what is stored what the
 * present rules say. Goes request by request, since who paid decides what counts as a refund. Needs no lease: what it writes takes the
 * same locks as following the chain, and leaves out what does not stand any more.
 *
 * @throws RpcError where the nodes do not answer; steps that were taken stay
 */
export async function* recheckChain(knex: Knex, chain: ReplayChain, terms: RecheckTerms): AsyncGenerator<RecheckStep> {
  const { name: network, chainId } = chain.tools.chain
  const scope = { ...terms, network, chainId }
  for (let after = terms.after; ; ) {
    const page = await nextRechecked(knex, scope, after, REQUESTS_A_PAGE)
    for (const batch of batchesOf(page)) yield await recheckBatch(chain, batch, terms)
    const last = page.at(-1)
    if (last === undefined) return
    after = last.requestId
  }
}

/** Whole requests, few enough to be read at once; what has more transactions is taken in parts, in the order of the chain. */
function* batchesOf(page: readonly RecheckedRequest[]): Generator<RecheckedRequest[]> {
  let batch: RecheckedRequest[] = []
  let transactions = 0
  for (const request of page) {
    for (let from = 0; from === 0 || from < request.txHashes.length; from += TRANSACTIONS_A_BATCH) {
      const part = { ...request, txHashes: request.txHashes.slice(from, from + TRANSACTIONS_A_BATCH) }
      if (transactions + part.txHashes.length > TRANSACTIONS_A_BATCH) {
        yield batch
        batch = []
        transactions = 0
      }
      batch.push(part)
      transactions += part.txHashes.length
    }
  }
  if (batch.length > 0) yield batch
}

async function recheckBatch(
  chain: ReplayChain,
  batch: readonly RecheckedRequest[],
  { accountId, isTrial, signal }: RecheckTerms,
): Promise<RecheckStep> {
  const step = {
    requestId: batch.at(-1)?.requestId ?? '',
    requests: new Set(batch.map(({ requestId }) => requestId)).size,
  }
  const txHashes = [...new Set(batch.flatMap((request) => request.txHashes))]
  if (txHashes.length === 0) return { ...step, transactions: 0, unread: [], changes: [] }
  const topics = new Set(batch.flatMap((request) => request.topics))
  const asked = { accountId, topics, txHashes, areReread: true }
  const { findings, blockOf } = await readAgain(chain, asked, signal)
  const certain = withoutDoubt(findings)
  const corrected = await chain.writer.correct({ accountId, findings: certain, blockOf, isTrial }, signal)
  return {
    ...step,
    transactions: blockOf.size,
    unread: txHashes.filter((txHash) => !corrected?.standing.has(txHash)),
    changes: corrected === undefined ? [] : describeChanges(corrected, certain, chain),
  }
}

/** The rate of a conversion of long ago may not be had any more, so what is stored of it stays, whatever is found now. */
function withoutDoubt(findings: Findings): Findings {
  const isDoubtful = (reason: UnmatchedReason) => reason === 'STALE_RATE' || reason === 'RATE_OFF'
  return { ...findings, unmatched: findings.unmatched.filter(({ reason }) => !isDoubtful(reason)) }
}

function describeChanges(corrected: Corrected, findings: Findings, { tools }: ReplayChain): RecheckChange[] {
  const { name: network, chainId } = tools.chain
  const reasons = new Map(findings.unmatched.map((event) => [placeKeyOf(event, { network, chainId }), event.reason]))
  const removed = (row: PaymentRow | RefundRow) => `removed: ${reasons.get(eventKeyOf(row) ?? '') ?? 'not found'}`
  const { paymentsBefore, payments, refundsBefore, refunds } = corrected
  const after = new Map(payments.map((row) => [row.id, row]))
  const ofPayments = [...new Map([...paymentsBefore, ...after]).keys()].flatMap((id) => {
    const [old, row] = [paymentsBefore.get(id), after.get(id)]
    const changes = old === undefined ? ['found'] : row === undefined ? [removed(old)] : differencesOf(old, row)
    const requestId = (row ?? old)?.request_id?.toString('hex') ?? ''
    return changes.map((change) => ({ requestId, what: 'payment' as const, id, change }))
  })
  const ofRefunds = (rows: readonly RefundRow[], others: readonly RefundRow[], tell: (row: RefundRow) => string) => {
    const keys = new Set(others.map(eventKeyOf))
    return rows
      .filter((row) => !keys.has(eventKeyOf(row)))
      .map((row) => ({
        requestId: row.request_id.toString('hex'),
        what: 'refund' as const,
        id: `${bytesToHex(row.tx_hash)}:${row.event_index}`,
        change: tell(row),
      }))
  }
  return [
    ...ofRefunds(refundsBefore, refunds, removed),
    ...ofRefunds(refunds, refundsBefore, ({ amount, currency }) => `found: ${trimNumeric(amount)} ${currency}`),
    ...ofPayments,
  ]
}

function differencesOf(old: PaymentRow, row: PaymentRow): string[] {
  const payerOf = ({ payer }: PaymentRow) => (payer === null ? 'unknown' : formatAddress(addressFromBytes(payer)))
  const told: readonly (readonly [string, (of: PaymentRow) => string])[] = [
    ['payer ', payerOf],
    ['amount ', ({ amount }) => trimNumeric(amount)],
    ['refunded ', ({ refunded_amount }) => trimNumeric(refunded_amount)],
    ['', ({ status }) => statusOfRank(status)],
  ]
  return told.flatMap(([name, tell]) => (tell(old) === tell(row) ? [] : [`${name}${tell(old)} -> ${tell(row)}`]))
}
