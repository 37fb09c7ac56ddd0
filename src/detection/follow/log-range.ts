import { RpcError } from '../../nodes/rpc-error.ts'

/** How many blocks one request for logs spans. Learned from how requests go: values and rules, without I/O. */

export const FIRST_RANGE = 2_000
const MAX_RANGE = 100_000

/** A range with this many logs is wide enough and does not grow. */
const MANY_LOGS = 4_000
/** A range with more logs than this is not processed but requested again, half as wide. */
const MAX_LOGS = 20_000
/** Reading and writing a range should not take longer. */
const MAX_STEP_MS = 10_000

/** Whether an error says that a range was too wide for the node. */
export function isRangeTooWide(error: unknown, blocks: number): boolean {
  return blocks > 1 && error instanceof RpcError && (error.kind === 'TOO_LARGE' || error.kind === 'TIMEOUT')
}

/** Whether a range has more logs than one step should process. */
export function hasTooManyLogs(logs: number, blocks: number): boolean {
  return blocks > 1 && logs > MAX_LOGS
}

/** The range after one of `blocks` blocks was too much. */
export function rangeAfterTooMuch(blocks: number): number {
  return Math.max(1, Math.floor(blocks / 2))
}

/** The range after one was read and written. */
export function rangeAfterRead(range: number, read: { readonly logs: number; readonly tookMs: number }): number {
  if (read.tookMs > MAX_STEP_MS) return Math.max(1, Math.floor(range / 2))
  return read.logs < MANY_LOGS ? Math.min(range * 2, MAX_RANGE) : range
}
