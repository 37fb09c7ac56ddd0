/** Hears how a migration goes. */
export interface MigrationReport {
  /** A step did not get its locks or its connection, and is tried again after the pause. */
  readonly waits: (waiting: WaitingStep) => void
  /** An index is being built, every ten seconds. */
  readonly builds: (building: IndexProgress) => void
}

export interface WaitingStep {
  readonly step: string
  readonly error: Error
  readonly pauseMs: number
  /** Sessions that use the step's tables, the longest transaction first: `pid 17 (psql, idle in transaction, for 12 s)`. */
  readonly blockers: readonly string[]
}

export interface IndexProgress {
  readonly index: string
  /** PostgreSQL's word, such as `building index: scanning table`. */
  readonly phase: string
  /** The part of the phase that is done, 0 to 100; null where the server tells none. */
  readonly percent: number | null
}

/** One line for a person. */
export function describeBuild({ index, phase, percent }: IndexProgress): string {
  return `index ${index}: ${phase}${percent === null ? '' : ` ${percent} %`}`
}

/** One line for a person. */
export function describeWait({ step, error, pauseMs, blockers }: WaitingStep): string {
  const others = blockers.length === 0 ? '' : `; in the way: ${blockers.join(', ')}`
  return `${step}: ${error.message}${others}; tried again in ${pauseMs / 1_000} s`
}
