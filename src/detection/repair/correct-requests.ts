import type { Knex } from 'knex'
import { decodeFeeProxyLog, type RpcLog } from '../../contracts/decode-events.ts'
import { chunksOf } from '../../domain/collections.ts'
import type { Hex } from '../../domain/hex.ts'
import { RpcError } from '../../nodes/rpc-error.ts'
import type { OpenChain } from '../chain/open-chain.ts'
import { type FindingTools, findPayments } from '../find/find-payments.ts'
import { eventKeyOf, type Findings } from '../match/detected.ts'
import type { BlockHeader, ChainReader, TransactionReceipt } from '../read/chain-reader.ts'
import { type Patience, UNHURRIED } from '../read/patience.ts'
import type { StoredBlock } from '../sql/chain-state-repository.ts'
import type { DetectionRepository } from '../sql/detection-repository.ts'
import { onChain, type RequestEvents, readRequestEvents, type StoredEvent } from '../sql/topics-repository.ts'
import type { Corrected } from '../write/payment-writer.ts'

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
  { accountId, patience, signal }: Whose & { readonly patience?: Patience },
): Promise<void> {
  for (const batch of batchesOf(requests)) {
    signal?.throwIfAborted()
    await correctBatch(chain, batch, { accountId, patience, signal })
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
    const requests = await readRequestEvents(knex, accountId, ids)
    await correctRequests(chain, onChain(requests, chainId), { accountId, signal })
  }
}

/**
 * Replays topics for an account: reads the events of its requests under these topics again, and attaches what they mean. They may mean something new: the
 * request was stored after its events were read; a bridge reported later who paid; the block that created the SingleRequestProxy which paid was read later.
 * Replaying twice has no further effect. A request whose events are all stored for the account is left out, unless its topic is to be judged `again`.
 *
 * No event is missed between this and the follower: a request is stored before its events are looked up here, and the follower looks up the topics
 * of events once more after it has stored them. Whichever comes second sees what the other stored.
 *
 * @param chains - by CAIP-2; events on other chains are left out
 * @throws the error of a chain that could not be read, after all other chains were read; then the topics are to be replayed again
 */
export async function replayTopics(
  repository: DetectionRepository,
  chains: ReadonlyMap<string, OpenChain>,
  { accountId, topics, again, signal }: Whose & { readonly topics: readonly Hex[]; readonly again: ReadonlySet<Hex> },
): Promise<void> {
  const known = await repository.eventsOfTopics(accountId, topics)
  const requests = known.filter(
    (request) => request.events.some(({ isOwn }) => !isOwn) || request.topics.some((topic) => again.has(topic)),
  )
  const chainIds = new Set(requests.flatMap(({ events }) => events.map(({ chainId }) => chainId)))
  // In parallel, so that a chain that does not answer does not use up the time of the others.
  const results = await Promise.allSettled(
    [...chainIds].map(async (chainId) => {
      const chain = chains.get(chainId)
      if (chain === undefined) return
      await correctRequests(chain, onChain(requests, chainId), { accountId, patience: chain.tools.live, signal })
    }),
  )
  const failed = results.find((result) => result.status === 'rejected')
  if (failed !== undefined) throw failed.reason
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
  /** Default {@link UNHURRIED}. */
  readonly patience?: Patience | undefined
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
  { accountId, isTrial = false, patience = UNHURRIED, proven, beside, signal }: BatchTerms,
): Promise<CorrectedBatch | undefined> {
  const stored = batch.flatMap(({ events }) => events)
  const known = new Set(stored.filter(({ isOwn }) => isOwn).map(({ txHash }) => txHash))
  const txHashes = [...new Set([...stored.map(({ txHash }) => txHash), ...(proven?.txHashes ?? [])])]
  if (txHashes.length === 0) return undefined
  const asked = {
    accountId,
    topics: new Set([...batch.flatMap(({ topics }) => topics), ...(proven?.topics ?? [])]),
    txHashes,
    // Of what is not stored, nothing can be taken back for want of a trace.
    neverTraced: new Set(txHashes.filter((txHash) => !known.has(txHash))),
    patience,
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
    (event) =>
      event.isOwn && proven.isRead(event) && !found.has(eventKeyOf(event)) && !findings.untraced.has(event.txHash),
  )
}

/** What events of an account mean, in transactions that were read again. */
export interface ReadAgain {
  readonly findings: Findings
  /** The block of each transaction; a transaction that could not be read is absent. */
  readonly blockOf: ReadonlyMap<Hex, StoredBlock>
}

/**
 * Reads transactions again and matches their events under some topics for an account.
 *
 * @param asked.topics - empty for all topics that the account knows
 * @param asked.neverTraced - transactions that had no trace then either
 * @throws RpcError
 */
export async function readAgain(
  { tools, reader }: Pick<OpenChain, 'tools' | 'reader'>,
  asked: {
    readonly accountId: number
    readonly topics: ReadonlySet<Hex>
    readonly txHashes: readonly Hex[]
    readonly neverTraced?: ReadonlySet<Hex>
    readonly patience: Patience
  },
  signal: AbortSignal | undefined,
): Promise<ReadAgain> {
  const { accountId, topics, neverTraced = new Set<Hex>(), patience } = asked
  const receipts = inChainOrder((await reader.receipts(asked.txHashes, signal)).flatMap(toReceipts))
  const logged = {
    logs: receipts.flatMap((receipt) => receipt.logs.filter((log) => hasTopic(log, topics, tools))),
    receipts: async () => receipts,
    blockTimes: (numbers: readonly number[]) => readTimes(reader, numbers, signal),
    reread: { accountId, neverTraced },
    patience,
  }
  const findings = await findPayments(tools, logged, signal)
  return { findings, blockOf: blocksOf(receipts.filter(({ txHash }) => !findings.untraced.has(txHash))) }
}

/** Leaves out a transaction that is gone, and one that is too large to read, whose events stay unmatched. */
function toReceipts(answer: TransactionReceipt | RpcError | undefined): TransactionReceipt[] {
  if (answer instanceof RpcError && answer.kind !== 'TOO_LARGE') throw answer
  return answer === undefined || answer instanceof RpcError ? [] : [answer]
}

/** A refund counts only after its payment, which may be in the same block, where the numbers of the logs tell the order. */
function inChainOrder(receipts: readonly TransactionReceipt[]): TransactionReceipt[] {
  const placeOf = ({ logs }: TransactionReceipt) => Number(logs[0]?.logIndex ?? 0)
  return receipts.toSorted((a, b) => a.blockNumber - b.blockNumber || placeOf(a) - placeOf(b))
}

function hasTopic(log: RpcLog, topics: ReadonlySet<Hex>, { chain }: FindingTools): boolean {
  const event = decodeFeeProxyLog(log)
  if (event === undefined || !chain.followed.contracts.has(event.emitter)) return false
  return topics.size === 0 || topics.has(event.topic)
}

function blocksOf(receipts: readonly TransactionReceipt[]): Map<Hex, StoredBlock> {
  return new Map(
    receipts.map(({ txHash, blockNumber, blockHash }) => [txHash, { number: blockNumber, hash: blockHash }]),
  )
}

async function readTimes(reader: ChainReader, numbers: readonly number[], signal: AbortSignal | undefined) {
  const headers = await reader.headers(numbers, signal)
  return new Map(headers.flatMap((header) => (header === undefined ? [] : [[header.number, header.timestampSec]])))
}
