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

/** What a reason says. */
interface ReasonTexts {
  /** What was wrong. `{name}` stands for a parameter. */
  readonly message: string
  /** What to do. Empty if there is nothing to do. */
  readonly remedy: string
}

/** A reason in the table. */
interface ReasonEntry extends ReasonTexts {
  readonly kind: ReasonKind
  readonly in: readonly Appearance[]
}

/** Declares an error. */
export function error<const T extends ReasonTexts>(kind: ReasonKind, texts: T): ReasonEntry & T {
  return { kind, in: ['error'], ...texts }
}

/** Declares an error of calls that pay, which is a warning on other answers. */
export function errorOrWarning<const T extends ReasonTexts>(kind: ReasonKind, texts: T): ReasonEntry & T {
  return { kind, in: ['error', 'warning'], ...texts }
}

/** Declares a warning. */
export function warning<const T extends ReasonTexts>(texts: T): ReasonEntry & T {
  return { kind: 'NOTICE', in: ['warning'], ...texts }
}

/** Declares why a candidate did not become a route. */
export function unavailable<const T extends ReasonTexts>(texts: T): ReasonEntry & T {
  return { kind: 'NOTICE', in: ['unavailable'], ...texts }
}

/** Declares what the configuration lacks: on missing routes, and on a request that nobody can pay for this reason. */
export function unavailableOrWarning<const T extends ReasonTexts>(texts: T): ReasonEntry & T {
  return { kind: 'NOTICE', in: ['unavailable', 'warning'], ...texts }
}
