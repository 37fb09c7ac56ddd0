import type { Logger } from '../../domain/logger.ts'

export type RefusalLog = ReturnType<typeof createRefusalLog>

const EVERY_MS = 60_000
const MAX_LINES = 1_000

/**
 * Makes what writes lines of refusals, which anybody can cause without end. What is left out is counted, and reported in one line at the end of the
 * minute.
 */
export function createRefusalLog(logger: Logger) {
  let reported = new Set<string>()
  let lines = 0
  let leftOut = 0
  let timer: NodeJS.Timeout | undefined

  function endMinute(): void {
    timer = undefined
    if (leftOut > 0)
      logger.info({ refusals: leftOut }, 'more refusals like those of the last minute, not logged one by one')
    reported = new Set()
    lines = 0
    leftOut = 0
  }

  function tell(write: () => void): void {
    timer ??= setTimeout(endMinute, EVERY_MS).unref()
    if (lines >= MAX_LINES) leftOut += 1
    else {
      lines += 1
      write()
    }
  }

  return {
    /** So many lines a minute in all, for single mistakes of callers without a key. */
    each: tell,
    /** Of each name and reason one line a minute, for refusals that go on until somebody stops. */
    once(name: string, reason: string, write: () => void): void {
      const key = `${reason} ${name}`
      if (reported.has(key)) leftOut += 1
      else {
        if (reported.size < MAX_LINES) reported.add(key)
        tell(write)
      }
    },
  }
}
