import type { Knex } from 'knex'
import type { Hex } from '../../domain/hex.ts'
import { chunksOf } from '../chunks.ts'
import { eventKeyOf, type Findings } from '../match/detected.ts'
import type { OpenChain } from '../open-chain.ts'
import type { BlockHeader, TransactionReceipt } from '../read/chain-reader.ts'
import { UNHURRIED } from '../read/patience.ts'
import type { DetectionRepository } from '../sql/detection-repository.ts'
import { type RequestEvents, readRequestEvents, type StoredEvent } from '../sql/request-events-repository.ts'
import type { Corrected } from '../write/payment-writer.ts'
import { readAgain } from './replay.ts'

const REQUESTS_A_PAGE = 500
const TRANSACTIONS_A_BATCH = 200

/** Whose requests are corrected. */
interface Whose {
  readonly accountId: number
  readonly signal?: AbortSignal | undefined
}

/**
 * Reads the events of requests that are stored on a chain again, and corrects what is stored by what they are now. Goes request by request, since who paid
 * decides what counts as a refund. Needs no lease: writing takes the same locks as following the chain, and leaves out transactions whose block is no
 * longer part of it.
 *
 * @throws RpcError; the batches before are written
 */
async function correctRequests(
  chain: OpenChain,
  requests: readonly RequestEvents[],
  { accountId, signal }: Whose,
): Promise<void> {
  for (const batch of batchesOf(requests)) {
    signal?.throwIfAborted()
    await correctBatch(chain, batch, { accountId, signal })
  }
}

/** The same of requests given by their ids. @throws RpcError */
export async function correctRequestIds(
  knex: Knex,
  chain: OpenChain,
  { accountId, requestIds, signal }: Whose & { readonly requestIds: readonly string[] },
): Promise<void> {
  const { chainId } = chain.tools.chain
  for (const ids of chunksOf(requestIds, REQUESTS_A_PAGE)) {
    const requests = await readRequestEvents(knex, { accountId, chainId }, ids)
    await correctRequests(chain, requests, { accountId, signal })
  }
}

/**
 * Corrects requests whose payers may be others than when their events were matched. One was paid by a SingleRequestProxy that was not known as one,
 * because the block that created it was read later: whoever gave the proxy the money is the payer, or nobody is known as such. To another a bridge
 * delivered, which told its payer later, or whose source a reorg removed. What is a refund depends on the payer, so refunds come and go.
 *
 * @param chains - by CAIP-2; requests on other chains are left out
 * @throws RpcError
 */
export async function correctPayers(
  repository: DetectionRepository,
  chains: ReadonlyMap<string, OpenChain>,
  { accountId, topics, signal }: Whose & { readonly topics: readonly Hex[] },
): Promise<void> {
  for (const [chainId, requests] of await repository.paidThroughOthers(accountId, topics)) {
    const chain = chains.get(chainId)
    if (chain !== undefined) await correctRequests(chain, requests, { accountId, signal })
  }
}

/** Batches of whole requests with few enough transactions to read at once. A request with more is split, in the order of the chain. */
export function* batchesOf(requests: readonly RequestEvents[]): Generator<RequestEvents[]> {
  let batch: RequestEvents[] = []
  let events = 0
  for (const request of requests) {
    for (let from = 0; from === 0 || from < request.events.length; from += TRANSACTIONS_A_BATCH) {
      const part = { ...request, events: request.events.slice(from, from + TRANSACTIONS_A_BATCH) }
      if (events + part.events.length > TRANSACTIONS_A_BATCH) {
        yield batch
        batch = []
        events = 0
      }
      batch.push(part)
      events += part.events.length
    }
  }
  if (batch.length > 0) yield batch
}

/** What proven blocks say, in place of the answers of any one node. */
export interface ProvenReading {
  /** By transaction hash. */
  readonly receipts: ReadonlyMap<Hex, TransactionReceipt>
  /** Of the receipts' blocks, by number. */
  readonly headers: ReadonlyMap<number, BlockHeader>
  /** Transactions with events of the requests, stored or not. */
  readonly txHashes: readonly Hex[]
  /** Topics of all events in the transactions: what is stored of a request may be of another. */
  readonly topics: readonly Hex[]
  /** Whether all followed events of the block in which an event is stored are among the receipts. */
  isRead(event: StoredEvent): boolean
}

interface BatchTerms extends Whose {
  /** Whether only to tell what would change. */
  readonly isTrial?: boolean
  /** Absent: the nodes are asked for the stored events alone. */
  readonly proven?: ProvenReading
  readonly beside?: (trx: Knex.Transaction, corrected: Corrected) => Promise<void>
}

/** What became of a batch. */
export interface CorrectedBatch {
  readonly findings: Findings
  readonly corrected: Corrected
}

/**
 * Corrects some requests by their events, stored ones and, where a proven reading is given, those of its blocks that are not stored.
 *
 * @returns undefined where there is nothing to read
 * @throws RpcError
 */
export async function correctBatch(
  chain: OpenChain,
  batch: readonly RequestEvents[],
  { accountId, isTrial = false, proven, beside, signal }: BatchTerms,
): Promise<CorrectedBatch | undefined> {
  const stored = batch.flatMap(({ events }) => events)
  const known = new Set(stored.map(({ txHash }) => txHash))
  const txHashes = [...new Set([...known, ...(proven?.txHashes ?? [])])]
  if (txHashes.length === 0) return undefined
  const asked = {
    accountId,
    topics: new Set([...batch.flatMap(({ topics }) => topics), ...(proven?.topics ?? [])]),
    txHashes,
    areReread: true,
    // Of what is not stored, nothing can be taken back for want of a trace.
    neverTraced: new Set(txHashes.filter((txHash) => !known.has(txHash))),
    patience: UNHURRIED,
  }
  const { findings, blockOf } = await readAgain(proven === undefined ? chain : withProof(chain, proven), asked, signal)
  const gone = proven === undefined ? [] : goneEvents(stored, findings, proven)
  const correction = { accountId, findings, blockOf, gone, keepsUndecided: true, isTrial, ...(beside && { beside }) }
  const corrected = await chain.writer.correct(correction, signal)
  return corrected && { findings, corrected }
}

/** The chain with receipts and block times of a proven reading alone. */
function withProof(chain: OpenChain, { receipts, headers }: ProvenReading): OpenChain {
  const reader: OpenChain['reader'] = {
    ...chain.reader,
    receipts: async (hashes) => hashes.map((hash) => receipts.get(hash)),
    headers: async (numbers) => numbers.map((number) => headers.get(number)),
  }
  return { ...chain, reader }
}

/** Stored events that their blocks do not have. */
function goneEvents(stored: readonly StoredEvent[], findings: Findings, proven: ProvenReading): StoredEvent[] {
  const counted = [...findings.accounts.values()].flatMap(({ payments, refunds }) => [...payments, ...refunds])
  const found = new Set([...counted, ...findings.unmatched].map(eventKeyOf))
  return stored.filter(
    (event) => proven.isRead(event) && !found.has(eventKeyOf(event)) && !findings.untraced.has(event.txHash),
  )
}
