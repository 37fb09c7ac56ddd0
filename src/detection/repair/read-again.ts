import { decodeFeeProxyLog, type RpcLog } from '../../contracts/decode-events.ts'
import type { Hex } from '../../domain/hex.ts'
import { RpcError } from '../../nodes/rpc-error.ts'
import type { OpenChain } from '../chain/open-chain.ts'
import { findPayments } from '../find/find-payments.ts'
import type { FindingTools } from '../find/finding-tools.ts'
import type { Findings } from '../match/detected.ts'
import type { ChainReader, TransactionReceipt } from '../read/chain-reader.ts'
import type { Patience } from '../read/patience.ts'
import type { StoredBlock } from '../sql/chain-state-repository.ts'

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
