/**
 * What a step came to.
 * - `MORE`: it moved, and there is more to do at once
 * - `CAUGHT_UP`: there is nothing to do before the next block
 * - `ALARM`: the chain is stopped
 * - `AGAIN`: it read nothing, since the chain moved meanwhile or the range was too wide: the next step may do better
 * - `WAIT`: it read nothing, since the node lacks something
 */
export type StepOutcome =
  | { readonly kind: 'MORE' | 'CAUGHT_UP' | 'ALARM' }
  | { readonly kind: 'AGAIN' | 'WAIT'; readonly reason: string }

export const MORE: StepOutcome = { kind: 'MORE' }
export const CAUGHT_UP: StepOutcome = { kind: 'CAUGHT_UP' }
export const ALARM: StepOutcome = { kind: 'ALARM' }
