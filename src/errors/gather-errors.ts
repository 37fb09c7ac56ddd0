import type { Reason } from './reasons.ts'
import { type FieldViolation, kindOf, type Unlisted, WaybillError } from './waybill-error.ts'

/** The most errors of one input that are reported. Each may have cost a search for the nearest name. */
export const MAX_VIOLATIONS = 16

export type GatheredErrors = ReturnType<typeof gatherErrors>

/** Gathers the errors of one input, so that its sender learns of all of them at once. */
export function gatherErrors() {
  const found: WaybillError[] = []
  return {
    /** Remembers an error of the input. Any other failure is thrown again, and so is the last error that an answer has space for. */
    note(thrown: unknown): void {
      if (!(thrown instanceof WaybillError) || kindOf(thrown.reason) !== 'INVALID_INPUT') throw thrown
      // Values that depend on a wrong one are wrong for the same reason, thrown as the same error.
      if (!found.includes(thrown)) found.push(thrown)
      if (found.length === MAX_VIOLATIONS) throw mergeErrors(found, { count: 0, isRestUnchecked: true })
    },
    /** @throws WaybillError with the reason of the first error and the violations of all; returns if there was none */
    raise(): void {
      if (found.length > 0) throw mergeErrors(found)
    },
  }
}

/**
 * Reads all values of an input, in their order.
 *
 * @param readers - one for each value; each may throw a WaybillError
 * @throws WaybillError as `raise` of {@link gatherErrors} does, if any reader threw an error of the input; other failures at once
 */
export function readAll<R extends Readonly<Record<string, () => unknown>>>(
  readers: R,
): { readonly [K in keyof R]: ReturnType<R[K]> } {
  const errors = gatherErrors()
  const values: Record<string, unknown> = {}
  for (const [name, read] of Object.entries(readers)) {
    try {
      values[name] = read()
    } catch (thrown) {
      errors.note(thrown)
    }
  }
  errors.raise()
  return values as { readonly [K in keyof R]: ReturnType<R[K]> }
}

/** As {@link readAll}, for readers that wait: each begins when the one before has ended. */
export async function readAllInOrder<R extends Readonly<Record<string, () => unknown>>>(
  readers: R,
): Promise<{ readonly [K in keyof R]: Awaited<ReturnType<R[K]>> }> {
  const errors = gatherErrors()
  const values: Record<string, unknown> = {}
  for (const [name, read] of Object.entries(readers)) {
    try {
      const value = read()
      // An await takes longer than most readers.
      values[name] = value instanceof Promise ? await value : value
    } catch (thrown) {
      errors.note(thrown)
    }
  }
  errors.raise()
  return values as { readonly [K in keyof R]: Awaited<ReturnType<R[K]>> }
}

/** Reads all values of a list, in their order. @throws as {@link readAll} does */
export function readEach<T, R>(given: readonly T[], read: (value: T, index: number) => R): readonly R[] {
  return Object.values(readAll(Object.fromEntries(given.map((each, at) => [at, () => read(each, at)] as const))))
}

/** As {@link readEach}, for a reader that waits. */
export async function readEachInOrder<T, R>(
  given: readonly T[],
  read: (value: T) => Promise<R>,
): Promise<readonly R[]> {
  return Object.values(
    await readAllInOrder(Object.fromEntries(given.map((each, at) => [at, () => read(each)] as const))),
  )
}

/** Reads a value once, for several readers that need it. A failure is the same error each time. */
export function readOnce<T>(read: () => T): () => T {
  let outcome = (): T => {
    try {
      const value = read()
      outcome = () => value
    } catch (error) {
      outcome = () => {
        throw error
      }
    }
    return outcome()
  }
  return () => outcome()
}

/**
 * One error with the reason and message of the first and the violations of all.
 *
 * @param unlisted - what was wrong beside them, or was not checked
 */
export function mergeErrors(errors: readonly WaybillError[], unlisted?: Unlisted): WaybillError {
  const [first] = errors
  if (first === undefined) throw new TypeError('there is no error to tell')
  if (errors.length === 1 && unlisted === undefined) return first
  const beside = [...errors.map((each) => each.unlisted), ...(unlisted === undefined ? [] : [unlisted])]
  return new WaybillError(first.reason, first.message, first.metadata, {
    cause: first.cause,
    violations: errors.flatMap(violationsOf),
    unlisted: {
      count: beside.reduce((sum, { count }) => sum + count, 0),
      isRestUnchecked: beside.some(({ isRestUnchecked }) => isRestUnchecked),
    },
  })
}

/** The fields of reasons whose messages name none. */
const fieldsOfReasons: { readonly [R in Reason]?: string } = {
  CURRENCY_MISMATCH: 'invoiceCurrency',
  INVALID_CURSOR: 'cursor',
  INVALID_LIMIT: 'limit',
}

/** The violations of an error; one without a field where no one field is wrong. */
export function violationsOf({ violations, reason, message }: WaybillError): readonly FieldViolation[] {
  return violations.length > 0 ? violations : [{ field: fieldsOfReasons[reason] ?? '', reason, description: message }]
}
