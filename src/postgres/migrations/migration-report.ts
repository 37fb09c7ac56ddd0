/** Hears of a step that did not get its locks or its connection, and is tried again after the pause. */
export type MigrationReport = (waiting: WaitingStep) => void

export interface WaitingStep {
  readonly step: string
  readonly error: Error
  readonly pauseMs: number
  /** Sessions that use the step's tables, the longest transaction first: `pid 17 (psql, idle in transaction, for 12 s)`. */
  readonly blockers: readonly string[]
}

/** One line for a person. */
export function describeWait({ step, error, pauseMs, blockers }: WaitingStep): string {
  const others = blockers.length === 0 ? '' : `; in the way: ${blockers.join(', ')}`
  return `${step}: ${error.message}${others}; tried again in ${pauseMs / 1_000} s`
}
