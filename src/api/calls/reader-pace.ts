import { startTimer } from './alarms.ts'

/** How fast the reader of a stream must take its messages. */
export interface PaceTerms {
  /** Rows a second, while rows are waiting. */
  readonly rowsPerSecond: number
  /** How long the reader may take nothing, or how far it may fall behind in all, in milliseconds. */
  readonly slackMs: number
  /** Called when the reader is too slow; again with each further message, if the call goes on. */
  readonly onTooSlow: () => void
}

export type ReaderPace = ReturnType<typeof createReaderPace>

/**
 * Watches how fast a reader takes its messages. Keeps a credit of time for the reader of a stream. The credit runs down while a message waits. Each row that is taken earns the time
 * that it may take, and time in which nothing waits is earned as well. The credit never exceeds the slack.
 *
 * Each stream has one timer, which is only restarted: a stream may have a million messages.
 */
export function createReaderPace({ rowsPerSecond, slackMs, onTooSlow }: PaceTerms) {
  let isGiven = false
  let changedAtMs = performance.now()
  let creditMs = slackMs
  let timer: NodeJS.Timeout | undefined
  const onTimeout = () => {
    if (isGiven) onTooSlow()
  }
  /** @returns how long the state before has lasted, in milliseconds */
  const change = (toGiven: boolean): number => {
    const nowMs = performance.now()
    const sinceMs = nowMs - changedAtMs
    isGiven = toGiven
    changedAtMs = nowMs
    return sinceMs
  }
  return {
    /** A message waits for the reader. */
    given(): void {
      creditMs = Math.min(slackMs, creditMs + change(true))
      if (timer === undefined) timer = startTimer(onTimeout, slackMs)
      else timer.refresh()
    },
    /** The reader has taken the message. @param rows - how many rows it had */
    taken(rows: number): void {
      creditMs = Math.min(slackMs, creditMs + (rows * 1_000) / rowsPerSecond - change(false))
      if (creditMs < 0) onTooSlow()
    },
    dispose: () => clearTimeout(timer),
  }
}
