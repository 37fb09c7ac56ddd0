type Write = (fields: object, message: string) => void

/** The part of pino's logger that modules use. Fields never have a secret. */
export interface Logger {
  readonly debug: Write
  readonly info: Write
  readonly warn: Write
  readonly error: Write
}

const LOG_EVERY_MS = 60_000

/**
 * Whether a trouble that lasts or recurs is to be logged now: the first time, and then once a minute.
 *
 * @param loggedAtMs - when it was logged last, by the clock of `nowMs`; undefined: never
 */
export function isLogDue(loggedAtMs: number | undefined, nowMs: number): boolean {
  return loggedAtMs === undefined || nowMs - loggedAtMs >= LOG_EVERY_MS
}
