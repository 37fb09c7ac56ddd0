/** The kind of failure, which decides the code on the wire. A `NOTICE` is never an error. */
export type ReasonKind =
  | 'INVALID_INPUT'
  | 'UNAUTHENTICATED'
  | 'FORBIDDEN'
  | 'NOT_FOUND'
  | 'CONFLICT'
  | 'PRECONDITION'
  | 'LIMITED'
  | 'UNSUPPORTED'
  | 'CANCELLED'
  | 'TIMEOUT'
  | 'UNAVAILABLE'
  | 'INTERNAL'
  | 'NOTICE'

/** Where a reason can stand in an answer. */
export type Appearance = 'error' | 'warning' | 'unavailable'

/** A reason in the table. */
export interface ReasonEntry {
  readonly kind: ReasonKind
  readonly in: readonly Appearance[]
  /** What was wrong. `{name}` stands for a parameter. */
  readonly message: string
  /** What to do. Empty if there is nothing to do. */
  readonly remedy: string
}

export const error = ['error'] as const
export const warning = ['warning'] as const
export const errorOrWarning = ['error', 'warning'] as const
export const unavailable = ['unavailable'] as const
/** For what the configuration lacks: on missing routes, and on a request that nobody can pay for this reason. */
export const unavailableOrWarning = ['unavailable', 'warning'] as const
