import { decodeFeeProxyLog, type RpcLog } from '../../contracts/decode-events.ts'
import type { Hex } from '../../domain/hex.ts'
import { RpcError } from '../../nodes/rpc-error.ts'
import { chunksOf } from '../chunks.ts'
import type { Findings } from '../match/detected.ts'
import { findPayments } from '../match/find-payments.ts'
import type { FindingTools } from '../match/finding-tools.ts'
import type { OpenChain } from '../open-chain.ts'
import type { ChainReader, TransactionReceipt } from '../read/chain-reader.ts'
import type { Patience } from '../read/patience.ts'
import type { StoredBlock } from '../sql/chain-state-repository.ts'
import type { DetectionRepository } from '../sql/detection-repository.ts'
import type { SeenTransaction } from '../sql/topics-repository.ts'

/** Receipts are read for so many transactions at a time, since anybody can pay under one reference as often as they like. */
const TRANSACTIONS_AT_ONCE = 500

/**
 * Replays topics for an account: reads the transactions of their events again and attaches what they mean to the account. Replaying twice has no
 * further effect.
 *
 * No event is missed between this and the follower: a request is stored before its events are looked up here, and the follower looks up the topics
 * of events once more after it has stored them. Whichever comes second sees what the other stored.
 *
 * @param chainOf - by CAIP-2; events on other chains are left out
 * @throws the error of a chain that could not be read, after all other chains were read; then the topics are to be replayed again
 */
export async function replayTopics(
  repository: DetectionRepository,
  chainOf: ReadonlyMap<string, OpenChain>,
  { accountId, topics }: { readonly accountId: number; readonly topics: readonly Hex[] },
  signal?: AbortSignal,
): Promise<void> {
  const seen = Map.groupBy(await repository.transactionsOfTopics(accountId, topics), ({ chainId }) => chainId)
  // In parallel, so that a chain that does not answer does not use up the time of the others.
  const results = await Promise.allSettled(
    [...seen].map(async ([chainId, transactions]) => {
      const chain = chainOf.get(chainId)
      if (chain === undefined) return
      for (const some of chunksOf(transactions, TRANSACTIONS_AT_ONCE)) {
        await replayOnChain(chain, { accountId, topics: new Set(topics), transactions: some }, signal)
      }
    }),
  )
  const failed = results.find((result) => result.status === 'rejected')
  if (failed !== undefined) throw failed.reason
}

interface Replayed {
  readonly accountId: number
  readonly topics: ReadonlySet<Hex>
  readonly transactions: readonly SeenTransaction[]
}

async function replayOnChain(
  chain: OpenChain,
  { accountId, topics, transactions }: Replayed,
  signal: AbortSignal | undefined,
): Promise<void> {
  const txHashes = transactions.map(({ txHash }) => txHash)
  const { findings, blockOf } = await readAgain(
    chain,
    { accountId, topics, txHashes, patience: chain.tools.live },
    signal,
  )
  await chain.writer.attach({ accountId, findings, blockOf }, signal)
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
 * @param asked.areReread - whether the account had these events matched before: then what is stored of them is left out of matching
 * @param asked.neverTraced - transactions that had no trace then either
 * @throws RpcError
 */
export async function readAgain(
  { tools, reader }: Pick<OpenChain, 'tools' | 'reader'>,
  asked: {
    readonly accountId: number
    readonly topics: ReadonlySet<Hex>
    readonly txHashes: readonly Hex[]
    readonly areReread?: boolean
    readonly neverTraced?: ReadonlySet<Hex>
    readonly patience: Patience
  },
  signal: AbortSignal | undefined,
): Promise<ReadAgain> {
  const { accountId, topics, areReread = false, neverTraced = new Set<Hex>(), patience } = asked
  const receipts = inChainOrder((await reader.receipts(asked.txHashes, signal)).flatMap(toReceipts))
  const logged = {
    logs: receipts.flatMap((receipt) => receipt.logs.filter((log) => hasTopic(log, topics, tools))),
    receipts: async () => receipts,
    blockTimes: (numbers: readonly number[]) => readTimes(reader, numbers, signal),
    areReread,
    neverTraced,
    patience,
  }
  const findings = await findPayments(tools, logged, signal, accountId)
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
