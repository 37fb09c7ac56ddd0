import type { Address } from '../../domain/address.ts'
import { isAboutLogCount, isRefusedAtAnySize, logsHintOf, rangeHintOf } from '../../nodes/classify-refusal.ts'
import { sizeAfterRefused, sizeAfterTaken, startSize } from '../../nodes/learned-size.ts'
import type { LogRange, UrlLimits } from '../../nodes/node-limits.ts'
import { isUnknownMethod, RpcError } from '../../nodes/rpc-error.ts'
import type { Findings } from '../match/detected.ts'
import type { BlockHeader, ChainReader } from '../read/chain-reader.ts'
import { MORE, type StepOutcome } from './next-step.ts'
import { type EventReader, inChainOrder } from './read-events.ts'

/** Final blocks to read, both ends included. */
interface WantedBlocks {
  readonly from: number
  readonly until: number
  /** Only logs of these contracts; of all followed ones where absent. */
  readonly addresses?: readonly Address[]
}

/** Writes what was found in a range, before anything else is read. @param last - the last block of the range */
export type WriteFinalBlocks = (last: BlockHeader, findings: Findings) => Promise<void>

/** What was known of the ranges of a URL when a range was last read. */
const intact = new WeakMap<UrlLimits, LogRange>()

function startOf(limits: UrlLimits): LogRange {
  return startLogRange(limits.declared.maxLogRange)
}

/** A node that calls one block too much may give no logs at all, so another node is asked: `TOO_LARGE` would mean that none can answer. */
function refusalOfBlock(error: RpcError): RpcError {
  const { kind, detail, refusal } = error
  if (kind !== 'TOO_LARGE' || refusal === undefined) return error
  return new RpcError('REFUSED', detail, { refusal, cause: error })
}

interface FinalBlocksOptions {
  readonly reader: ChainReader
  readonly readEvents: EventReader
  readonly clock: () => Date
}

/** Makes what reads final blocks of one chain as ranges of logs, as wide as the node and the limits of a step allow. It keeps the width for each node. */
export function createFinalBlocksReader({ reader, readEvents, clock }: FinalBlocksOptions) {
  /** All who read the chain of a URL share it. */
  const rangeOf = (node: number) => reader.limitsOf(node).logRange() ?? startOf(reader.limitsOf(node))
  const learn = (node: number, range: LogRange) => reader.limitsOf(node).noteLogRange(range, widthOf(range))
  const waitFor = (reason: string): StepOutcome => {
    // Another node may have what this one lacks.
    reader.doubt(reason)
    return { kind: 'WAIT', reason }
  }

  /**
   * Reads the first of the blocks, as many as go at once, and has them written. The outcome is AGAIN where they were too many.
   *
   * @throws RpcError, and what `write` throws; then nothing was written
   */
  return async (
    { from, until, addresses }: WantedBlocks,
    write: WriteFinalBlocks,
    signal: AbortSignal | undefined,
  ): Promise<StepOutcome> => {
    const startedAtMs = clock().getTime()
    const blocksAt = (node: number) => widthOf(rangeOf(node))
    const { node, to, logs: answer, last } = await reader.logsFrom({ from, until, addresses, blocksAt }, signal)
    const blocks = to - from + 1
    const tooMuch = `blocks ${from} to ${to} are too many at once`
    if (answer instanceof RpcError) {
      if (answer.kind === 'BEHIND') return waitFor(answer.message)
      if (!isRangeTooWide(answer, blocks)) {
        if (blocks > 1) throw answer
        // Where one block alone is refused, its width was never the reason.
        learn(node, intact.get(reader.limitsOf(node)) ?? startOf(reader.limitsOf(node)))
        throw refusalOfBlock(answer)
      }
      learn(node, rangeAfterRefused(rangeOf(node), blocks, answer))
      return { kind: 'AGAIN', reason: tooMuch }
    }
    if (hasTooManyLogs(answer.length, blocks)) {
      learn(node, rangeAfterTooManyLogs(rangeOf(node), blocks))
      return { kind: 'AGAIN', reason: tooMuch }
    }
    if (last === undefined) return waitFor(`block ${to} is final, and the node does not have it`)
    const logs = inChainOrder(answer)
    const isCanonical = (block: number) => block >= from && block <= to
    await write(last, await readEvents({ logs, blocks: [last], areFinal: true, isCanonical }, signal))
    const tookMs = clock().getTime() - startedAtMs
    learn(node, rangeAfterRead(rangeOf(node), { blocks, logs: logs.length, tookMs }))
    intact.set(reader.limitsOf(node), rangeOf(node))
    return MORE
  }
}

/** How many blocks one request for logs spans, at one node. Learned from how requests go: values and rules, without I/O. */

const FIRST_RANGE = 2_000
const MAX_RANGE = 100_000

/** A range with this many logs is wide enough and does not grow. */
const MANY_LOGS = 4_000
/** A range with more logs than this is not processed but requested again, half as wide. */
const MAX_LOGS = 20_000
/** Reading and writing a range should not take longer. */
const MAX_STEP_MS = 10_000
/** A range that was refused in unknown words, and whose half has so many logs, may have been refused for its logs. */
const SUSPECT_LOGS = 500
/** A range is chosen to have less than this part of the logs that a node allows. */
const LOGS_MARGIN = 0.9

/** The ranges of a node of which nothing is known. @param declared - the most blocks, where the chains file says it */
export function startLogRange(declared: number = MAX_RANGE): LogRange {
  return { blocks: startSize(Math.min(FIRST_RANGE, declared), declared) }
}

/** How many blocks to ask for. */
export function widthOf({ blocks, denseBlocks }: LogRange): number {
  return Math.max(1, Math.floor(Math.min(blocks.size, denseBlocks ?? blocks.size)))
}

/** Whether a smaller range may be taken where one was refused: whatever the words, unless they are known to mean something else. */
export function isRangeTooWide(error: unknown, blocks: number): boolean {
  if (blocks <= 1 || !(error instanceof RpcError)) return false
  if (error.kind === 'TOO_LARGE' || error.kind === 'TIMEOUT') return true
  const { refusal } = error
  return error.kind === 'REFUSED' && refusal !== undefined && !isRefusedAtAnySize(refusal) && !isUnknownMethod(refusal)
}

/** Whether a range has more logs than one step should process. */
export function hasTooManyLogs(logs: number, blocks: number): boolean {
  return blocks > 1 && logs > MAX_LOGS
}

/** After a range was read whose logs are more than one step should process. */
function rangeAfterTooManyLogs(known: LogRange, blocks: number): LogRange {
  return { ...known, denseBlocks: halfOf(blocks) }
}

const halfOf = (blocks: number) => Math.max(1, Math.floor(blocks / 2))

/** After a range was refused. The next one is narrower. */
export function rangeAfterRefused(known: LogRange, blocks: number, { kind, refusal }: RpcError): LogRange {
  const dense = rangeAfterTooManyLogs(known, blocks)
  if (refusal === undefined) return dense
  const hint = rangeHintOf(refusal, blocks)
  if (isAboutLogCount(refusal)) {
    const mostLogs = logsHintOf(refusal) ?? known.mostLogs ?? 0
    return { ...dense, mostLogs, denseBlocks: Math.min(hint ?? blocks, halfOf(blocks)) }
  }
  const isSure = kind === 'TOO_LARGE'
  return {
    ...known,
    blocks: sizeAfterRefused(known.blocks, blocks, hint),
    before: isSure ? undefined : (known.before ?? known.blocks),
  }
}

/** After a range was read and written. */
export function rangeAfterRead(
  known: LogRange,
  read: { readonly blocks: number; readonly logs: number; readonly tookMs: number },
): LogRange {
  const { blocks, logs, tookMs } = read
  if (tookMs > MAX_STEP_MS) return rangeAfterTooManyLogs(known, blocks)
  if (known.before !== undefined && logs >= SUSPECT_LOGS) {
    return { blocks: known.before, denseBlocks: blocks, mostLogs: logs }
  }
  const mostLogs = known.mostLogs === undefined ? undefined : Math.max(known.mostLogs, logs)
  const isMany = logs >= MANY_LOGS
  return {
    blocks: isMany ? known.blocks : sizeAfterTaken(known.blocks, blocks),
    denseBlocks: denseAfterRead({ ...known, mostLogs }, { blocks, logs }),
    mostLogs,
  }
}

/** Grows as long as the next range is not expected to have more logs than the node was seen to take. */
function denseAfterRead(
  { denseBlocks, mostLogs = MAX_LOGS }: LogRange,
  { blocks, logs }: { readonly blocks: number; readonly logs: number },
): number | undefined {
  if (denseBlocks === undefined || blocks < denseBlocks) return denseBlocks
  if (logs >= MANY_LOGS) return denseBlocks
  const allowed = logs === 0 ? Number.POSITIVE_INFINITY : Math.floor((LOGS_MARGIN * mostLogs * blocks) / logs)
  const next = Math.min(blocks * 2, Math.max(blocks, allowed))
  return next > MAX_RANGE ? undefined : next
}
