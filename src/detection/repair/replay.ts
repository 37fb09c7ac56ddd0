import { decodeFeeProxyLog, type RpcLog } from '../../contracts/decode-events.ts'
import type { Hex } from '../../domain/hex.ts'
import { RpcError } from '../../nodes/rpc-error.ts'
import type { Findings } from '../match/detected.ts'
import { type FindingTools, findPayments } from '../match/find-payments.ts'
import type { ChainReader } from '../read/chain-reader.ts'
import type { TransactionReceipt } from '../read/read-transaction.ts'
import type { DetectionRepository, SeenTransaction, StoredBlock } from '../sql/detection-repository.ts'
import type { PaymentWriter } from '../sql/payment-writer.ts'

/** What looking again needs of a chain. */
export interface ReplayChain {
  readonly tools: FindingTools
  readonly reader: ChainReader
  readonly writer: PaymentWriter
}

/** Anybody can pay under one reference as often as they like. */
const TRANSACTIONS_AT_ONCE = 500

/**
 * Looks again at every event of topics that was seen before the account knew them. Reads the transactions' receipts anew and
 * takes the same way as a new block; doing it twice changes nothing.
 *
 * Together with the follower nothing falls between: a request is stored before events are looked up here, and the follower looks
 * its topics up once more after it has stored events. Whichever comes second sees the other.
 *
 * @param chainOf - by CAIP-2; chains that are not followed are left out
 * @throws what a chain with such an event met, after the others were done; then it is to be tried again, and what is attached by
 *   then is not read again
 */
export async function replayTopics(
  repository: DetectionRepository,
  chainOf: ReadonlyMap<string, ReplayChain>,
  { accountId, topics }: { readonly accountId: number; readonly topics: readonly Hex[] },
  signal?: AbortSignal,
): Promise<void> {
  const seen = Map.groupBy(await repository.transactionsOfTopics(accountId, topics), ({ chainId }) => chainId)
  // All at a time: a chain that does not answer must not use up the time of the others.
  const results = await Promise.allSettled(
    [...seen].map(async ([chainId, transactions]) => {
      const chain = chainOf.get(chainId)
      if (chain === undefined) return
      for (let from = 0; from < transactions.length; from += TRANSACTIONS_AT_ONCE) {
        const some = transactions.slice(from, from + TRANSACTIONS_AT_ONCE)
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
  chain: ReplayChain,
  { accountId, topics, transactions }: Replayed,
  signal: AbortSignal | undefined,
): Promise<void> {
  const txHashes = transactions.map(({ txHash }) => txHash)
  const { findings, blockOf } = await readAgain(chain, { accountId, topics, txHashes }, signal)
  await chain.writer.attach({ accountId, findings, blockOf }, signal)
}

/** What an account's events under some topics mean, in transactions that are read again. */
export interface ReadAgain {
  readonly findings: Findings
  /** The block that each transaction was read in; what could not be read is absent. */
  readonly blockOf: ReadonlyMap<Hex, StoredBlock>
}

/**
 * Reads receipts anew and finds out what they mean to an account.
 *
 * @param asked.areReread - whether they were read before, so that what is stored of them says nothing
 */
export async function readAgain(
  { tools, reader }: Pick<ReplayChain, 'tools' | 'reader'>,
  asked: {
    readonly accountId: number
    readonly topics: ReadonlySet<Hex>
    readonly txHashes: readonly Hex[]
    readonly areReread?: boolean
  },
  signal: AbortSignal | undefined,
): Promise<ReadAgain> {
  const { accountId, topics, areReread = false } = asked
  const receipts = inChainOrder((await reader.receipts(asked.txHashes, signal)).flatMap(toReceipts))
  const logged = {
    logs: receipts.flatMap((receipt) => receipt.logs.filter((log) => hasTopic(log, topics, tools))),
    receipts: async () => receipts,
    blockTimes: (numbers: readonly number[]) => readTimes(reader, numbers, signal),
    areReread,
  }
  const findings = await findPayments(tools, logged, signal, accountId)
  return { findings, blockOf: blocksOf(receipts.filter(({ txHash }) => !findings.untraced.has(txHash))) }
}

/** A transaction that is gone, or is too large to be read, is left out; the event of the latter stays unmatched. */
function toReceipts(answer: TransactionReceipt | RpcError | undefined): TransactionReceipt[] {
  if (answer instanceof RpcError && answer.kind !== 'TOO_LARGE') throw answer
  return answer === undefined || answer instanceof RpcError ? [] : [answer]
}

/** A refund is one only after its payment, and both may be in one block; logs are numbered throughout it. */
function inChainOrder(receipts: readonly TransactionReceipt[]): TransactionReceipt[] {
  const placeOf = ({ logs }: TransactionReceipt) => Number(logs[0]?.logIndex ?? 0)
  return receipts.toSorted((a, b) => a.blockNumber - b.blockNumber || placeOf(a) - placeOf(b))
}

function hasTopic(log: RpcLog, topics: ReadonlySet<Hex>, { chain }: FindingTools): boolean {
  const event = decodeFeeProxyLog(log)
  return event !== undefined && topics.has(event.topic) && chain.followed.contracts.has(event.emitter)
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
