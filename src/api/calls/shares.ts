import { USUAL_SHARE } from '../../domain/account.ts'

/**
 * The one rule by which the places of this process are shared out among its callers: running calls, bodies that have not arrived, streams
 * without a key.
 */

/** Who asks for a place. They lose in this order when places are scarce. */
export type Standing = 'keyless' | 'publishable' | 'secret'

/** Somebody who holds places. */
export interface Holder {
  readonly standing: Standing
  /** Equal for those who share one part: a key with its account, or the client address of callers without a secret key. */
  readonly name: string
  /** The part of all places that nobody takes from this holder, 0 to 1. Only a secret key has one. */
  readonly share: number
}

/** From which part of all places on further ones are refused. Nobody is refused below nine tenths. */
const FULL_AT: Readonly<Record<Standing, number>> = { keyless: 0.9, publishable: 0.95, secret: 1 }

export interface Claim {
  readonly holder: Pick<Holder, 'standing' | 'share'>
  /** How many places there are. */
  readonly size: number
  /** How many are taken, by all holders. */
  readonly taken: number
  /** How many the holder has. */
  readonly held: number
  /** Whether a holder has no more than the usual share, however many places are free. */
  readonly isCapped: boolean
}

/**
 * Decides whether a holder gets one more place.
 *
 * A secret key within its share always gets one, even if all places are taken: so there may be more calls than places, at most by the shares of
 * all keys. Above its share it gets what is free; others get it only while a part is free for those who come before them.
 *
 * @returns why not: the holder has all that it may have, or there are no places for its like
 */
export function decideClaim({ holder, size, taken, held, isCapped }: Claim): 'GRANTED' | 'CAP_REACHED' | 'FULL' {
  if (isCapped && held >= placesOf(size, USUAL_SHARE)) return 'CAP_REACHED'
  if (holder.standing === 'secret' && held < placesOf(size, holder.share)) return 'GRANTED'
  return taken < size * FULL_AT[holder.standing] ? 'GRANTED' : 'FULL'
}

/** A part of some places, at least one. */
export function placesOf(size: number, share: number): number {
  return Math.max(1, Math.floor(size * share))
}

export type Places = ReturnType<typeof createPlaces>

/** Makes what counts the places that holders have. */
export function createPlaces({ size, isCapped }: { readonly size: number; readonly isCapped: boolean }) {
  const held = createCounts<string>()
  let taken = 0
  const decide = (holder: Holder) => decideClaim({ holder, size, taken, held: held.of(holder.name), isCapped })
  return {
    /** Whether the holder would get one now. */
    hasPlaceFor: (holder: Holder) => decide(holder) === 'GRANTED',
    /** Takes a place. @returns why there is none; or a function that gives it back, to be called once */
    take(holder: Holder): 'CAP_REACHED' | 'FULL' | (() => void) {
      const decision = decide(holder)
      if (decision !== 'GRANTED') return decision
      taken += 1
      held.add(holder.name, 1)
      return () => {
        taken -= 1
        held.add(holder.name, -1)
      }
    },
  }
}

/** So many names are kept although their count is 0: to forget and learn them again with every call would make the map anew all the time. */
const MAX_KEPT = 1_000

/** Counts for each of many names. */
export function createCounts<K>() {
  const counts = new Map<K, number>()
  const of = (name: K) => counts.get(name) ?? 0
  return {
    of,
    add(name: K, change: 1 | -1) {
      const count = of(name) + change
      if (count === 0 && counts.size > MAX_KEPT) counts.delete(name)
      else counts.set(name, count)
    },
  }
}
