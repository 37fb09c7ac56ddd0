import { waybillError } from '../errors/waybill-error.ts'

/** A summary has no more groups. */
export const MAX_GROUPS = 10_000

/** Half of a call's deadline; the call may wait for its slot in the other half. Enough for some twenty million payments. */
export const SUMMARY_TIMEOUT_MS = 15_000

/**
 * Runs the statement of a summary.
 *
 * @param work - ends when the signal that it gets fires
 * @throws WaybillError SUMMARY_TIMEOUT; the signal's reason when it fires
 */
export async function withinTime<T>(
  timeoutMs: number,
  signal: AbortSignal | undefined,
  work: (bounded: AbortSignal) => Promise<T>,
): Promise<T> {
  const tooLong = AbortSignal.timeout(timeoutMs)
  const bounded = signal === undefined ? tooLong : AbortSignal.any([signal, tooLong])
  try {
    return await work(bounded)
  } catch (error) {
    if (bounded.aborted && bounded.reason === tooLong.reason) throw waybillError('SUMMARY_TIMEOUT', { timeoutMs })
    throw error
  }
}

/** @throws WaybillError TOO_MANY_GROUPS */
export function requireFewGroups(groups: readonly unknown[]): void {
  if (groups.length > MAX_GROUPS) throw waybillError('TOO_MANY_GROUPS', { limit: MAX_GROUPS })
}
