import type { Knex } from 'knex'
import type { Hex } from '../../domain/hex.ts'
import { chunksOf } from '../chunks.ts'
import type { Findings } from '../match/detected.ts'
import type { UnmatchedReason } from '../match/match-event.ts'
import type { OpenChain } from '../open-chain.ts'
import { UNHURRIED } from '../read/patience.ts'
import { nextRechecked, type RecheckedRequest, readRechecked } from '../sql/recheck-repository.ts'
import { describeChanges, type RecheckChange } from './describe-changes.ts'
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

/** The year 9999: later than any block. */
const FAR_FUTURE_MS = 253_370_764_800_000
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
export async function* recheckRequests(
  chain: OpenChain,
  requests: readonly RecheckedRequest[],
  terms: Pick<RecheckTerms, 'accountId' | 'isTrial' | 'signal'>,
): AsyncGenerator<RecheckStep> {
  for (const batch of batchesOf(requests)) yield await recheckBatch(chain, batch, terms)
}

/**
 * The same for all transactions of some requests, given by their ids: what counts as a refund depends on their payments, wherever they are.
 *
 * @throws RpcError
 */
export async function* recheckRequestIds(
  knex: Knex,
  chain: OpenChain,
  {
    accountId,
    requestIds,
    signal,
  }: Pick<RecheckTerms, 'accountId' | 'signal'> & { readonly requestIds: readonly string[] },
): AsyncGenerator<RecheckStep> {
  const { name: network, chainId } = chain.tools.chain
  const scope = { accountId, network, chainId, before: new Date(FAR_FUTURE_MS) }
  for (const ids of chunksOf(requestIds, REQUESTS_A_PAGE)) {
    yield* recheckRequests(chain, await readRechecked(knex, scope, ids), { accountId, isTrial: false, signal })
  }
}

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
    changes: corrected === undefined ? [] : describeChanges(corrected, certain, chain.tools.chain),
  }
}

/** The rate of an old conversion may no longer be readable, so a payment that is unmatched for its rate now stays as it is stored. */
export function withoutRateProblems(findings: Findings): Findings {
  const isRateProblem = (reason: UnmatchedReason) => reason === 'STALE_RATE' || reason === 'RATE_OFF'
  return { ...findings, unmatched: findings.unmatched.filter(({ reason }) => !isRateProblem(reason)) }
}
