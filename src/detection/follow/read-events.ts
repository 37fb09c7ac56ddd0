import type { RpcLog } from '../../contracts/decode-events.ts'
import type { Hex } from '../../domain/hex.ts'
import { isLogDue, type Logger } from '../../domain/logger.ts'
import { RpcError } from '../../nodes/rpc-error.ts'
import type { OpenChain } from '../chain/open-chain.ts'
import { findPayments } from '../find/find-payments.ts'
import type { Findings } from '../match/detected.ts'
import type { BlockHeader, ChainReader, TransactionReceipt } from '../read/chain-reader.ts'
import { BACKFILL } from '../read/patience.ts'

/** A block or transaction that the node had a moment ago is gone: the chain moved while it was read. */
export class ChainMovedError extends Error {
  override readonly name = 'ChainMovedError'
}

/** Logs that were read, and the blocks they are in. */
interface ReadLogs {
  readonly logs: readonly RpcLog[]
  /** Headers that were read already. */
  readonly blocks: readonly BlockHeader[]
  /** Whether the blocks are final: then a node that lacks something is at fault, not the chain. */
  readonly areFinal: boolean
  /** Whether a receipt's block is one of those that were read; another one is not part of the chain. */
  isCanonical(block: number, hash: Hex): boolean
}

export type EventReader = ReturnType<typeof createEventReader>

interface EventReaderOptions extends Pick<OpenChain, 'tools' | 'reader'> {
  readonly logger: Logger
}

/** Makes what turns logs of one chain into findings: reads what else their events need, and matches them. */
export function createEventReader(options: EventReaderOptions) {
  const { tools, reader, logger } = options
  let warnedAtMs: number | undefined

  /** @throws ChainMovedError where the blocks are not final; RpcError */
  return async (from: ReadLogs, signal: AbortSignal | undefined): Promise<Findings> => {
    const logged = {
      logs: from.logs,
      receipts: (hashes: readonly Hex[]) => readReceipts(options, hashes, from, signal),
      blockTimes: (numbers: readonly number[]) => readBlockTimes(reader, { numbers, ...from }, signal),
      patience: from.areFinal ? BACKFILL : tools.live,
    }
    const findings = await findPayments(tools, logged, signal)
    const warning = describeRateProblem(findings)
    if (warning !== undefined && isLogDue(warnedAtMs, performance.now())) {
      warnedAtMs = performance.now()
      logger.warn({ chain: tools.chain.name, ...warning }, 'a conversion was not counted because of its rate')
    }
    return findings
  }
}

/** Describes conversions that were not counted because of their rate: an attempt at fraud, a dead feed, or a path that is not configured. */
function describeRateProblem({ unmatched }: Findings) {
  const [first, ...others] = unmatched.filter(({ reason }) => reason === 'RATE_OFF' || reason === 'STALE_RATE')
  if (first === undefined) return undefined
  const { reason, txHash, event } = first
  return { reason, rateProblem: event['rateProblem'], txHash, others: others.length }
}

async function readReceipts(
  { tools, reader, logger }: EventReaderOptions,
  hashes: readonly Hex[],
  from: ReadLogs,
  signal: AbortSignal | undefined,
): Promise<TransactionReceipt[]> {
  const answers = hashes.length === 0 ? [] : await reader.receipts(hashes, signal)
  return answers.flatMap((answer, index) => {
    const txHash = hashes[index]
    if (answer instanceof RpcError) {
      if (answer.kind !== 'TOO_LARGE') throw from.areFinal ? answer : new ChainMovedError(answer.message)
      const fields = { chain: tools.chain.name, txHash, err: answer }
      logger.error(fields, 'a receipt is too large to be read: its payments are not matched')
      return []
    }
    if (answer !== undefined && from.isCanonical(answer.blockNumber, answer.blockHash)) return [answer]
    const text = `the node gave logs of transaction ${txHash}, but has no receipt of it in these blocks`
    throw from.areFinal ? new RpcError('REFUSED', text) : new ChainMovedError(text)
  })
}

/**
 * Sorts logs by block, then by their place in it, each once: some nodes repeat a log.
 *
 * @throws RpcError where the node gives a transaction in two blocks, so that other nodes are asked
 */
export function inChainOrder(logs: readonly RpcLog[]): RpcLog[] {
  const sorted = logs.toSorted(
    (a, b) => Number(a.blockNumber) - Number(b.blockNumber) || Number(a.logIndex) - Number(b.logIndex),
  )
  const blocks = new Map<string, number>()
  const seen = new Set<string>()
  return sorted.filter(({ transactionHash, blockNumber, logIndex }) => {
    const block = Number(blockNumber)
    const known = blocks.get(transactionHash) ?? block
    if (known !== block) {
      const text = `the node gives logs of transaction ${transactionHash} in blocks ${known} and ${block}`
      throw new RpcError('INCONSISTENT', text)
    }
    blocks.set(transactionHash, block)
    const place = `${transactionHash} ${Number(logIndex)}`
    if (seen.has(place)) return false
    seen.add(place)
    return true
  })
}

interface TimesWanted extends Pick<ReadLogs, 'blocks' | 'logs'> {
  readonly numbers: readonly number[]
}

/** Finds the timestamps of blocks, in seconds by number: in headers and logs that were read already, else on the chain. */
export async function readBlockTimes(
  reader: Pick<ChainReader, 'headers'>,
  { numbers, blocks, logs }: TimesWanted,
  signal?: AbortSignal,
): Promise<Map<number, number>> {
  const times = new Map<number, number>()
  for (const { blockNumber, blockTimestamp } of logs) {
    // Some nodes have the field and leave it null or 0.
    const timestampSec = typeof blockTimestamp === 'string' ? Number(blockTimestamp) : 0
    if (timestampSec > 0) times.set(Number(blockNumber), timestampSec)
  }
  for (const { number, timestampSec } of blocks) times.set(number, timestampSec)
  const unread = numbers.filter((number) => !times.has(number))
  const headers = unread.length === 0 ? [] : await reader.headers(unread, signal)
  for (const header of headers) if (header !== undefined) times.set(header.number, header.timestampSec)
  return times
}
