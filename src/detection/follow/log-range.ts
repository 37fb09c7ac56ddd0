import { isAboutLogCount, isRefusedAtAnySize, logsHintOf, rangeHintOf } from '../../nodes/classify-refusal.ts'
import { sizeAfterRefused, sizeAfterTaken, startSize } from '../../nodes/learned-size.ts'
import { isUnknownMethod, RpcError } from '../../nodes/rpc-error.ts'
import type { LogRange } from '../../nodes/url-limits.ts'

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
export function rangeAfterTooManyLogs(known: LogRange, blocks: number): LogRange {
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
