import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createReaderPace } from './keep-deadline.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

interface Step {
  /** How long nothing waits, then how long the message waits, in seconds. */
  readonly idle?: number
  readonly waits: number
  readonly rows?: number
}

const messages = (count: number, step: Step): readonly Step[] => Array.from({ length: count }, () => step)

/** How many messages a reader gets, at ten rows a second and 30 seconds of slack. */
function read(steps: readonly Step[]): number {
  let isEnded = false
  const onTooSlow = () => {
    isEnded = true
  }
  const pace = createReaderPace({ rowsPerSecond: 10, slackMs: 30_000, onTooSlow })
  let count = 0
  for (const { idle = 0, waits, rows = 20 } of steps) {
    vi.advanceTimersByTime(idle * 1_000)
    pace.given()
    vi.advanceTimersByTime(waits * 1_000)
    if (isEnded) break
    pace.taken(rows)
    count += 1
    if (isEnded) break
  }
  pace.dispose()
  expect(vi.getTimerCount()).toBe(0)
  return count
}

it.each<[string, readonly Step[], number]>([
  ['takes all at the minimum rate', messages(1_000, { waits: 2 }), 1_000],
  ['takes all far faster', messages(1_000, { waits: 0.01 }), 1_000],
  ['makes a pause that is allowed', [...messages(5, { waits: 1 }), { waits: 29 }, ...messages(99, { waits: 1 })], 105],
  [
    'makes another pause when it has made up for the first',
    [{ waits: 29 }, ...messages(30, { waits: 0.5 }), { waits: 29 }],
    32,
  ],
  ['waits for hours for something to come, and takes it', messages(5, { idle: 36_000, waits: 20 }), 5],
])('a reader that %s gets everything', (_, steps, count) => {
  expect([steps.length, read(steps)]).toEqual([count, count])
})

it.each<[string, readonly Step[], number]>([
  ['takes a message every 29 seconds', messages(1_000, { waits: 29 }), 2],
  ['takes a row every 29 seconds', messages(1_000, { waits: 29, rows: 1 }), 2],
  ['takes half of the minimum rate', messages(1_000, { waits: 4 }), 16],
  ['makes one pause after the other', [{ waits: 29 }, { waits: 1 }, { waits: 29 }, { waits: 1 }], 3],
  ['takes nothing for as long as the slack', [{ waits: 0 }, { waits: 30 }, { waits: 0 }], 1],
])('a reader that %s is too slow', (_, steps, count) => {
  expect(read(steps)).toBe(count)
})
