import { useEffect, useRef } from 'react'

/** Which row of the table each payment has, by its id, in the order of the rows. */
export type Slots = ReadonlyMap<string, number>

/**
 * Gives each payment a row: the one that it had, else one that has become free, else a new one. A browser changes the words of a row in a fraction
 * of the time in which it removes one and makes another.
 */
export function assignSlots(before: Slots, ids: readonly string[]): Slots {
  const kept = new Set(ids)
  const free = [...before].filter(([id]) => !kept.has(id)).map(([, slot]) => slot)
  let next = Math.max(-1, ...before.values()) + 1
  return new Map(ids.map((id) => [id, before.get(id) ?? free.shift() ?? next++]))
}

/** The keys of the rows that show these payments, which may not repeat. */
export function useSlots(ids: readonly string[]): readonly number[] {
  const shown = useRef<Slots>(new Map())
  const slots = assignSlots(shown.current, ids)
  useEffect(() => {
    shown.current = slots
  })
  return [...slots.values()]
}
