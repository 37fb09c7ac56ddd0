import { waybillError } from '../../errors/waybill-error.ts'

/** So many begin before the process looks at its other connections again. */
const AT_ONCE = 4

/** About 0.2 s of work. */
const MAX_WAITING = 1_000

/**
 * Lets requests without a key begin a few at a time, in their order, so that calls with a key need not wait for a burst of them to be answered.
 *
 * @returns waits for the turn of a request; rejects with OVERLOADED when too many wait
 */
export function createKeylessTurns(): () => Promise<void> {
  const waiting: (() => void)[] = []

  function beginSome(): void {
    for (const begin of waiting.splice(0, AT_ONCE)) begin()
    if (waiting.length > 0) setImmediate(beginSome)
  }

  return () => {
    if (waiting.length >= MAX_WAITING) return Promise.reject(waybillError('OVERLOADED', {}))
    return new Promise((resolve) => {
      if (waiting.push(resolve) === 1) setImmediate(beginSome)
    })
  }
}
