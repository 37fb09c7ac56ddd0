const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE

/** The pause before each retry, in milliseconds: those of Standard Webhooks. They end before the log is pruned, after seven days. */
const PAUSES_MS = [5 * SECOND, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 14 * HOUR, 20 * HOUR, 24 * HOUR]

/** A receiver cannot ask for a longer pause: the log is pruned meanwhile. */
const MAX_ASKED_MS = 24 * HOUR

/**
 * When a delivery is tried again that has failed.
 *
 * @param attempts - those made, 1 or more
 * @param asked - by the receiver's Retry-After
 * @returns undefined when that was the last attempt
 */
export function nextAttemptAt(attempts: number, now: Date, asked: Date | undefined): Date | undefined {
  const pauseMs = PAUSES_MS[attempts - 1]
  if (pauseMs === undefined) return undefined
  const askedMs = asked === undefined ? 0 : Math.min(asked.getTime() - now.getTime(), MAX_ASKED_MS)
  return new Date(now.getTime() + Math.max(pauseMs, askedMs))
}

/** Reads a header Retry-After: seconds or a date. Undefined for any other text. */
export function readRetryAfter(text: string | undefined, now: Date): Date | undefined {
  if (text === undefined) return undefined
  if (/^\d{1,9}$/.test(text)) return new Date(now.getTime() + Number(text) * SECOND)
  const atMs = Date.parse(text)
  return /^[A-Z][a-z]{2}, /.test(text) && !Number.isNaN(atMs) ? new Date(atMs) : undefined
}
