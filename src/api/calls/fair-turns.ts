import { startTimer } from '../listener/alarms.ts'

/** Gives turns at something of which there is little, so that who asks for much does not keep it from who asks for little. */
export interface FairTurns {
  /**
   * Waits for a turn.
   *
   * @param who - equal for those who share what is their part
   * @param untilMs - of `nowMs`: waits no longer
   * @returns what ends the turn; to be called once
   * @throws TooManyAtOnceError; the signal's reason when it fires before the turn has come
   */
  readonly take: (who: string, terms: { readonly signal: AbortSignal; readonly untilMs: number }) => Promise<() => void>
}

export interface FairTurnsOptions {
  /** Turns at once. */
  readonly places: number
  /** Of them, of one who asks: what is left remains for those who come, without a wait for a turn to end. */
  readonly placesEach: number
  /** How many may wait, of one who asks. */
  readonly waitingEach: number
  /** Milliseconds of a clock that only goes forward. */
  readonly nowMs: () => number
}

/** Somebody has so much under way that there is no turn for more of it. */
export class TooManyAtOnceError extends Error {
  override readonly name = 'TooManyAtOnceError'
  /** How long the last one that got no turn, or the next one to get one, has waited, in ms. */
  readonly waitedMs: number

  constructor(waitedMs: number) {
    super(`no turn within ${waitedMs} ms`)
    this.waitedMs = waitedMs
  }
}

interface Waiter {
  readonly sinceMs: number
  readonly begin: () => void
}

/** Somebody who has turns or waits for them. */
interface Asker {
  underWay: number
  /** In the order in which they came. */
  readonly waiting: Waiter[]
}

/**
 * Whoever has the fewest turns under way gets the next one; of several, whoever began or ended one the longest ago. What one asks for is
 * given in the order in which it came.
 */
export function createFairTurns({ places, placesEach, waitingEach, nowMs }: FairTurnsOptions): FairTurns {
  /** The first began or ended a turn the longest ago. */
  const askers = new Map<string, Asker>()
  let underWay = 0

  function begin(who: string, asker: Asker): void {
    underWay += 1
    asker.underWay += 1
    moveBehind(who, asker)
  }

  function end(who: string, asker: Asker): void {
    underWay -= 1
    asker.underWay -= 1
    moveBehind(who, asker)
    forgetIdle(who, asker)
    giveFreeTurns()
  }

  function moveBehind(who: string, asker: Asker): void {
    askers.delete(who)
    askers.set(who, asker)
  }

  function forgetIdle(who: string, asker: Asker): void {
    if (asker.underWay === 0 && asker.waiting.length === 0) askers.delete(who)
  }

  function giveFreeTurns(): void {
    while (underWay < places) {
      const next = nextAsker()
      if (next === undefined) return
      const [who, asker] = next
      begin(who, asker)
      asker.waiting.shift()?.begin()
    }
  }

  function nextAsker(): readonly [string, Asker] | undefined {
    let next: readonly [string, Asker] | undefined
    for (const entry of askers) {
      const [, { underWay: has, waiting }] = entry
      if (waiting.length > 0 && has < placesEach && has < (next?.[1].underWay ?? placesEach)) next = entry
    }
    return next
  }

  function wait(who: string, asker: Asker, { signal, untilMs }: Parameters<FairTurns['take']>[1]): Promise<void> {
    const sinceMs = nowMs()
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const settle = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', onAbort)
    }
    const waiter: Waiter = {
      sinceMs,
      begin() {
        settle()
        resolve()
      },
    }
    const leave = (error: unknown) => {
      settle()
      asker.waiting.splice(asker.waiting.indexOf(waiter), 1)
      forgetIdle(who, asker)
      reject(error)
    }
    const onAbort = () => leave(signal.reason)
    const timer = startTimer(() => leave(new TooManyAtOnceError(nowMs() - sinceMs)), untilMs - sinceMs)
    signal.addEventListener('abort', onAbort, { once: true })
    askers.set(who, asker)
    asker.waiting.push(waiter)
    return promise
  }

  return {
    async take(who, terms) {
      terms.signal.throwIfAborted()
      const asker = askers.get(who) ?? { underWay: 0, waiting: [] }
      if (underWay < places && asker.underWay < placesEach) begin(who, asker)
      else if (asker.waiting.length < waitingEach) await wait(who, asker, terms)
      else {
        const [oldest] = asker.waiting
        throw new TooManyAtOnceError(oldest === undefined ? 0 : nowMs() - oldest.sinceMs)
      }
      return () => end(who, asker)
    },
  }
}
