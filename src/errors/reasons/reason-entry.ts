/** What a line of the table of reasons holds. */

/** What sort of failure a reason is; decides the code on the wire. `NOTICE` never is an error. */
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

/** A line of the table. */
export interface ReasonEntry {
  readonly kind: ReasonKind
  readonly in: readonly Appearance[]
  /** What was wrong. `{name}` stands for a parameter. */
  readonly message: string
  /** What to do. Empty where the message says it. */
  readonly remedy: string
}

export const error = ['error'] as const
export const warning = ['warning'] as const
export const errorOrWarning = ['error', 'warning'] as const
export const unavailable = ['unavailable'] as const
/** Of what the configuration lacks: told of the routes, and of a request that therefore nobody can pay. */
export const unavailableOrWarning = ['unavailable', 'warning'] as const
