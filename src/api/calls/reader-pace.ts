import { startTimer } from '../listener/alarms.ts'

/** How fast the reader of a stream must take what waits for it. */
export interface PaceTerms {
  /** Rows a second, while any wait. */
  readonly rowsPerSecond: number
  /** How long it may take nothing, or be late in all, in milliseconds. */
  readonly slackMs: number
  /** The reader is too slow; called once, more often where nobody acts on it. */
  readonly onTooSlow: () => void
}

/** Watches how fast a reader takes what it is given. */
export interface ReaderPace {
  readonly given: () => void
  /** What was given last was taken. @param rows - how many rows were in it */
  readonly taken: (rows: number) => void
  readonly dispose: () => void
}

/**
 * Keeps a credit of time for the reader of a stream. While something waits to be taken the credit runs down; each row that is taken earns
 * the time that it may take, and time in which nothing waits is the reader's as well. It never exceeds the slack.
 *
 * There is one timer a stream, which is only put back: streams may have a million messages.
 */
export function createReaderPace({ rowsPerSecond, slackMs, onTooSlow }: PaceTerms): ReaderPace {
  let isGiven = false
  let changedAtMs = performance.now()
  let creditMs = slackMs
  let timer: NodeJS.Timeout | undefined
  const onTimeout = () => {
    if (isGiven) onTooSlow()
  }
  /** @returns how long it was as it was */
  const change = (toGiven: boolean): number => {
    const nowMs = performance.now()
    const sinceMs = nowMs - changedAtMs
    isGiven = toGiven
    changedAtMs = nowMs
    return sinceMs
  }
  return {
    given() {
      creditMs = Math.min(slackMs, creditMs + change(true))
      if (timer === undefined) timer = startTimer(onTimeout, slackMs)
      else timer.refresh()
    },
    taken(rows) {
      creditMs = Math.min(slackMs, creditMs + (rows * 1_000) / rowsPerSecond - change(false))
      if (creditMs < 0) onTooSlow()
    },
    dispose: () => clearTimeout(timer),
  }
}
