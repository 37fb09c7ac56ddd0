export type Random = ReturnType<typeof createRandom>

/**
 * Random numbers from a fixed seed, so that a second start finds the requests of the first. Mulberry32: 32 bits of state, enough for data that
 * only has to seem varied.
 */
export function createRandom(seed: number) {
  let state = seed >>> 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const below = (limit: number): number => Math.floor(next() * limit)
  return {
    /** In [0, 1). */
    next,
    /** A whole number in [0, limit). */
    below,
    pick<T>(list: readonly T[]): T {
      const chosen = list[below(list.length)]
      if (chosen === undefined) throw new RangeError('the list is empty')
      return chosen
    },
    /** Roughly normal, mean 0, standard deviation 1. */
    normal: () => Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next()),
  }
}

const MIN_CENTS = 100
const MAX_CENTS = 5_000_000
/** Natural logarithm of the median amount in cents (about 120 US dollars), and its standard deviation. */
const LOG_MEDIAN = 9.4
const LOG_DEVIATION = 1.3

/** The amount of a payment: many small ones, a few large ones. */
export function drawCents(random: Random): number {
  const drawn = Math.round(Math.exp(LOG_MEDIAN + LOG_DEVIATION * random.normal()))
  return Math.min(MAX_CENTS, Math.max(MIN_CENTS, drawn))
}
