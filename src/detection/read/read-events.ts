import type { RpcLog } from '../../contracts/decode-events.ts'
import type { Hex } from '../../domain/hex.ts'
import type { Logger } from '../../domain/logger.ts'
import { RpcError } from '../../nodes/rpc-error.ts'
import type { Findings } from '../match/detected.ts'
import { type FindingTools, findPayments } from '../match/find-payments.ts'
import type { BlockHeader, ChainReader } from './chain-reader.ts'
import type { TransactionReceipt } from './read-transaction.ts'

/** A block or transaction that was there a moment ago is gone: the chain moved while it was read. */
export class ChainMovedError extends Error {
  override readonly name = 'ChainMovedError'
}

/** Logs that were read, and the ground they stand on. */
export interface ReadLogs {
  readonly logs: readonly RpcLog[]
  /** Headers that were read already. */
  readonly blocks: readonly BlockHeader[]
  /** Final blocks do not move, so there a node that lacks something is at fault. */
  readonly areFinal: boolean
  /** Whether a receipt's block is among those that were looked at. */
  stands(block: number, hash: Hex): boolean
}

/** Reads what else the events of logs need, and finds out what they mean to whom. */
export interface EventReader {
  /** @throws ChainMovedError where the blocks are not final; RpcError */
  read(logs: ReadLogs, signal: AbortSignal | undefined): Promise<Findings>
}

const SAY_AGAIN_MS = 60_000

/** Makes the reader of one chain. */
export function createEventReader(options: {
  readonly tools: FindingTools
  readonly reader: ChainReader
  readonly logger: Logger
}): EventReader {
  const { tools, reader, logger } = options
  const network = tools.chain.name
  let saidAtMs = Number.NEGATIVE_INFINITY

  /** Somebody paid a request of ours and is not counted, which may be an attempt at fraud, a dead feed or a path that is not configured. */
  function tellOfRates({ unmatched }: Findings): void {
    const [first, ...others] = unmatched.filter(({ reason }) => reason === 'RATE_OFF' || reason === 'STALE_RATE')
    if (first === undefined || performance.now() - saidAtMs < SAY_AGAIN_MS) return
    saidAtMs = performance.now()
    const { reason, txHash, event } = first
    const what = { network, reason, rateProblem: event['rateProblem'], txHash, others: others.length }
    logger.warn(what, 'a conversion was not counted because of its rate')
  }

  async function readReceipts(hashes: readonly Hex[], from: ReadLogs, signal: AbortSignal | undefined) {
    const answers = hashes.length === 0 ? [] : await reader.receipts(hashes, signal)
    return answers.flatMap((answer, index): TransactionReceipt[] => {
      const txHash = hashes[index]
      if (answer instanceof RpcError) {
        if (answer.kind !== 'TOO_LARGE') throw from.areFinal ? answer : new ChainMovedError(answer.message)
        logger.error(
          { network, txHash, err: answer },
          'a receipt is too large to be read: its payments are not matched',
        )
        return []
      }
      if (answer !== undefined && from.stands(answer.blockNumber, answer.blockHash)) return [answer]
      const text = `the node told logs of transaction ${txHash}, and has no receipt of it there`
      throw from.areFinal ? new RpcError('REFUSED', text) : new ChainMovedError(text)
    })
  }

  return {
    async read(from, signal) {
      const logged = {
        logs: from.logs,
        receipts: (hashes: readonly Hex[]) => readReceipts(hashes, from, signal),
        blockTimes: (numbers: readonly number[]) => readBlockTimes(reader, { numbers, ...from }, signal),
      }
      const findings = await findPayments(tools, logged, signal)
      tellOfRates(findings)
      return findings
    },
  }
}

/** By block and place in it. */
export function inChainOrder(logs: readonly RpcLog[]): RpcLog[] {
  return logs.toSorted(
    (a, b) => Number(a.blockNumber) - Number(b.blockNumber) || Number(a.logIndex) - Number(b.logIndex),
  )
}

interface TimesWanted {
  readonly numbers: readonly number[]
  readonly blocks: readonly BlockHeader[]
  readonly logs: readonly RpcLog[]
}

/** Seconds by block number: from headers and logs that were read already, the rest from the chain. */
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
