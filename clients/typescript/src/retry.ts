import type { WaybillCallError } from './call-error.ts'

/** A failed attempt of a call. */
export interface FailedAttempt {
  readonly error: Pick<WaybillCallError, 'code' | 'retryAfterMs'>
  /** Attempts before this one. */
  readonly attempt: number
  /** Attempts allowed after the first. */
  readonly retries: number
  /** Whether the call may be carried out twice without harm. */
  readonly isSafe: boolean
  /** Time until the deadline of the call. */
  readonly leftMs: number
  /** From 0 to 1. */
  readonly random: number
}

const FIRST_WAIT_MS = 250
const LONGEST_WAIT_MS = 8_000

/**
 * How long to wait before the call is tried again; undefined if it is not. A call that was refused for its number is tried again whatever
 * it does, one whose answer is missing only if it may be carried out twice.
 */
export function waitBeforeRetry({
  error,
  attempt,
  retries,
  isSafe,
  leftMs,
  random,
}: FailedAttempt): number | undefined {
  const { code, retryAfterMs } = error
  const isRefused = code === 'resource_exhausted' && retryAfterMs !== undefined
  if (attempt >= retries || !(isRefused || (code === 'unavailable' && isSafe))) return undefined
  const waitMs =
    retryAfterMs === undefined ? backOff(attempt, random, LONGEST_WAIT_MS) : afterWait(retryAfterMs, random)
  return waitMs < leftMs ? waitMs : undefined
}

/** Doubles with each attempt up to a limit, and takes between half of that and all of it, so that clients do not come back together. */
export function backOff(attempt: number, random: number, longestMs: number): number {
  return Math.min(longestMs, FIRST_WAIT_MS * 2 ** Math.min(attempt, 16)) * (0.5 + random / 2)
}

/** Never earlier than the service says. */
export function afterWait(retryAfterMs: number, random: number): number {
  return retryAfterMs + FIRST_WAIT_MS * random
}

/**
 * Waits for an answer, which goes on by itself when it is no longer waited for.
 *
 * @param late - the error when the time is over
 * @throws what the answer throws; `late`; the signal's reason
 */
export async function within<T>(
  waitMs: number,
  answer: Promise<T>,
  late: () => Error,
  signal?: AbortSignal,
): Promise<T> {
  const answered = new AbortController()
  const end = sleep(waitMs, signal === undefined ? answered.signal : AbortSignal.any([signal, answered.signal]))
  try {
    return await Promise.race([answer, end.then(() => Promise.reject(late()))])
  } finally {
    answered.abort()
  }
}

/** @throws the signal's reason as soon as it is aborted */
export async function sleep(waitMs: number, signal: AbortSignal | undefined): Promise<void> {
  signal?.throwIfAborted()
  await new Promise<void>((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer)
      reject(signal?.reason as Error)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop)
      resolve()
    }, waitMs)
    signal?.addEventListener('abort', stop, { once: true })
  })
}
