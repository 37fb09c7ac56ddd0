import type { Knex } from 'knex'
import { addressFromBytes, formatAddress } from '../../domain/address.ts'
import { trimNumeric } from '../../domain/decimal.ts'
import { bytesToHex, type Hex } from '../../domain/hex.ts'
import { statusOfRank } from '../../domain/payment.ts'
import type { PaymentRow } from '../../store/payment-row.ts'
import type { RefundRow } from '../../store/request-ledger.ts'
import type { Findings } from '../match/detected.ts'
import type { UnmatchedReason } from '../match/match-event.ts'
import type { OpenChain } from '../open-chain.ts'
import { UNHURRIED } from '../read/patience.ts'
import { nextRechecked, type RecheckedRequest, readRechecked } from '../sql/recheck-repository.ts'
import { rowKeyAt, rowKeyOf } from '../write/payment-rows.ts'
import type { Corrected } from '../write/payment-writer.ts'
import { readAgain } from './replay.ts'

/** Which events of an account are read again. */
export interface RecheckTerms {
  readonly accountId: number
  /** Only payments and refunds in blocks before this time, which may have been matched by older rules; unmatched events of any time. */
  readonly before: Date
  /** Begins after this request; '' for the first. */
  readonly after: string
  /** Whether only to tell what would change. */
  readonly isTrial: boolean
  readonly signal?: AbortSignal | undefined
}

/** A correction of a stored payment or refund. */
export interface RecheckChange {
  readonly requestId: string
  readonly what: 'payment' | 'refund'
  /** Of a payment its id; of a refund `transaction:event`. */
  readonly id: string
  /** For example `REFUNDED -> CONFIRMED`, `removed: NOT_FROM_PAYEE`. */
  readonly change: string
}

/** A batch of requests that is done. */
export interface RecheckStep {
  /** The last request that was read: `after` to continue from here. */
  readonly requestId: string
  readonly requests: number
  /** How many were read again. */
  readonly transactions: number
  /** Transactions that the node does not have, or could not read. */
  readonly unread: readonly Hex[]
  readonly changes: readonly RecheckChange[]
}

const REQUESTS_A_PAGE = 500
const TRANSACTIONS_A_BATCH = 200

/**
 * Reads the transactions of an account's payments, refunds and unmatched events on a chain again, and corrects what is stored by the present rules.
 * Goes request by request, since who paid decides what counts as a refund. Needs no lease: writing takes the same locks as following the chain, and
 * leaves out transactions whose block is no longer part of it.
 *
 * @throws RpcError where the nodes do not answer; the steps before are written
 */
export async function* recheckChain(knex: Knex, chain: OpenChain, terms: RecheckTerms): AsyncGenerator<RecheckStep> {
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

/** Reads some requests again, as {@link recheckChain} does. @throws RpcError */
export async function recheckRequests(
  chain: OpenChain,
  requests: readonly RecheckedRequest[],
  terms: Pick<RecheckTerms, 'accountId' | 'isTrial' | 'signal'>,
): Promise<void> {
  for (const batch of batchesOf(requests)) await recheckBatch(chain, batch, terms)
}

/** Reads all transactions of some requests again, whatever their age, and corrects what is stored. @throws RpcError */
export async function recheckRequestIds(
  knex: Knex,
  chain: OpenChain,
  {
    accountId,
    requestIds,
    now,
  }: { readonly accountId: number; readonly requestIds: readonly string[]; readonly now: Date },
  signal?: AbortSignal,
): Promise<void> {
  const { name: network, chainId } = chain.tools.chain
  const terms = { accountId, before: new Date(now.getTime() + AHEAD_MS), after: '', isTrial: false, signal }
  const requests = await readRechecked(knex, { ...terms, network, chainId }, requestIds)
  await recheckRequests(chain, requests, terms)
}

/** The time of a block can be a little ahead of ours. */
const AHEAD_MS = 24 * 60 * 60 * 1_000

/** Batches of whole requests with few enough transactions to read at once. A request with more is split, in the order of the chain. */
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
  chain: OpenChain,
  batch: readonly RecheckedRequest[],
  { accountId, isTrial, signal }: Pick<RecheckTerms, 'accountId' | 'isTrial' | 'signal'>,
): Promise<RecheckStep> {
  const step = {
    requestId: batch.at(-1)?.requestId ?? '',
    requests: new Set(batch.map(({ requestId }) => requestId)).size,
  }
  const txHashes = [...new Set(batch.flatMap((request) => request.txHashes))]
  if (txHashes.length === 0) return { ...step, transactions: 0, unread: [], changes: [] }
  const topics = new Set(batch.flatMap((request) => request.topics))
  const asked = { accountId, topics, txHashes, areReread: true, patience: UNHURRIED }
  const { findings, blockOf } = await readAgain(chain, asked, signal)
  const certain = withoutRateProblems(findings)
  const corrected = await chain.writer.correct({ accountId, findings: certain, blockOf, isTrial }, signal)
  return {
    ...step,
    transactions: blockOf.size,
    unread: txHashes.filter((txHash) => !corrected?.canonical.has(txHash)),
    changes: corrected === undefined ? [] : describeChanges(corrected, certain, chain),
  }
}

/** The rate of an old conversion may no longer be readable, so a payment that is unmatched for its rate now stays as it is stored. */
export function withoutRateProblems(findings: Findings): Findings {
  const isRateProblem = (reason: UnmatchedReason) => reason === 'STALE_RATE' || reason === 'RATE_OFF'
  return { ...findings, unmatched: findings.unmatched.filter(({ reason }) => !isRateProblem(reason)) }
}

function describeChanges(corrected: Corrected, findings: Findings, { tools }: OpenChain): RecheckChange[] {
  const { name: network, chainId } = tools.chain
  const reasons = new Map(findings.unmatched.map((event) => [rowKeyAt(event, { network, chainId }), event.reason]))
  const removed = (row: PaymentRow | RefundRow) => `removed: ${reasons.get(rowKeyOf(row) ?? '') ?? 'not found'}`
  const { paymentsBefore, payments, refundsBefore, refunds } = corrected
  const after = new Map(payments.map((row) => [row.id, row]))
  const ofPayments = [...new Map([...paymentsBefore, ...after]).keys()].flatMap((id) => {
    const [old, row] = [paymentsBefore.get(id), after.get(id)]
    const changes = old === undefined ? ['found'] : row === undefined ? [removed(old)] : differencesOf(old, row)
    const requestId = (row ?? old)?.request_id?.toString('hex') ?? ''
    return changes.map((change) => ({ requestId, what: 'payment' as const, id, change }))
  })
  const ofRefunds = (
    rows: readonly RefundRow[],
    others: readonly RefundRow[],
    describe: (row: RefundRow) => string,
  ) => {
    const keys = new Set(others.map(rowKeyOf))
    return rows
      .filter((row) => !keys.has(rowKeyOf(row)))
      .map((row) => ({
        requestId: row.request_id.toString('hex'),
        what: 'refund' as const,
        id: `${bytesToHex(row.tx_hash)}:${row.event_index}`,
        change: describe(row),
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
  const fields: readonly (readonly [string, (of: PaymentRow) => string])[] = [
    ['payer ', payerOf],
    ['amount ', ({ amount }) => trimNumeric(amount)],
    ['refunded ', ({ refunded_amount }) => trimNumeric(refunded_amount)],
    ['', ({ status }) => statusOfRank(status)],
  ]
  return fields.flatMap(([name, textOf]) =>
    textOf(old) === textOf(row) ? [] : [`${name}${textOf(old)} -> ${textOf(row)}`],
  )
}
