/**
 * Calls back after a time, in milliseconds.
 *
 * @returns a function that cancels the alarm
 */
export type SetAlarm = (delayMs: number, ring: () => void) => () => void

/**
 * A class, since V8 counts how many objects of a literal outlive a collection. Most alarms do, so V8 came to make them in old space, together with
 * the closures that they name. Those kept all of each call until the next full collection, which took a third of the time of a small call.
 */
class Alarm {
  /** Undefined once it is cancelled, so that it keeps nothing of its call. */
  ring: (() => void) | undefined
  readonly dueMs: number
  timer: NodeJS.Timeout | undefined = undefined

  constructor(ring: () => void, dueMs: number) {
    this.ring = ring
    this.dueMs = dueMs
  }
}

/** An alarm that is cancelled by then never gets a timer. */
const SOON_MS = 20

/** The longest delay of a timer, about 25 days, in ms. */
const LONGEST_TIMER_MS = 2 ** 31 - 1

/**
 * Makes alarms for what nearly always ends long before its time. A timer for each call is a large part of the cost of a small call; an alarm
 * gets one only if it is still set after a moment.
 */
export function createAlarms(): SetAlarm {
  let young: Alarm[] = []
  let sweeper: NodeJS.Timeout | undefined

  function sweep(): void {
    sweeper = undefined
    const nowMs = performance.now()
    for (const alarm of young) {
      if (alarm.ring !== undefined) alarm.timer = startTimer(alarm.ring, alarm.dueMs - nowMs)
    }
    young = []
  }

  return (delayMs, ring) => {
    if (delayMs < 2 * SOON_MS) {
      const timer = startTimer(ring, delayMs)
      return () => clearTimeout(timer)
    }
    const alarm = new Alarm(ring, performance.now() + delayMs)
    young.push(alarm)
    sweeper ??= setTimeout(sweep, SOON_MS)
    return () => {
      alarm.ring = undefined
      clearTimeout(alarm.timer)
    }
  }
}

/** Starts a timer of any delay. A negative one rings at once; one beyond the longest timer rings after the longest. */
export function startTimer(ring: () => void, delayMs: number): NodeJS.Timeout {
  return setTimeout(ring, Math.min(Math.max(0, delayMs), LONGEST_TIMER_MS))
}
