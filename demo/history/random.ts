export type Random = ReturnType<typeof createRandom>

/**
 * Random numbers from a fixed seed, so that a second start finds the requests of the first. Mulberry32: 32 bits of state, enough for data that
 * only has to look varied.
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
