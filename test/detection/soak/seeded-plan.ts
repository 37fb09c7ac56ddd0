/** Random decisions that are the same for the same seed. Each actor has a stream of its own, so that timing does not mix their plans. */
import { seededRandom } from '../../../bench/search/seeded-random.ts'

export interface Plan {
  /** From 0 up to 1. */
  next(): number
  /** A whole number, both ends included. */
  between(least: number, most: number): number
  chance(probability: number): boolean
  pick<T>(values: readonly T[]): T
  /** Picks by weight. */
  weighted<T extends string>(weights: Readonly<Record<T, number>>): T
  hex(bytes: number): string
}

/** @param actor - the plans of two actors of one seed have nothing in common */
export function planOf(seed: number, actor: string): Plan {
  let mixed = seed | 0
  for (const letter of actor) mixed = (Math.imul(mixed, 31) + letter.charCodeAt(0)) | 0
  const next = seededRandom(mixed)
  const between = (least: number, most: number) => least + Math.floor(next() * (most - least + 1))
  return {
    next,
    between,
    chance: (probability) => next() < probability,
    pick(values) {
      const value = values[between(0, values.length - 1)]
      if (value === undefined) throw new RangeError('nothing to pick from')
      return value
    },
    weighted<T extends string>(weights: Readonly<Record<T, number>>) {
      const entries = Object.entries(weights) as [T, number][]
      let at = next() * entries.reduce((total, [, weight]) => total + weight, 0)
      for (const [name, weight] of entries) {
        at -= weight
        if (at < 0) return name
      }
      return (entries.at(-1) as [T, number])[0]
    },
    hex: (bytes) => Array.from({ length: bytes }, () => between(0, 255).toString(16).padStart(2, '0')).join(''),
  }
}
