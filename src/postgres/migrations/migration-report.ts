/** Hears how a migration goes. */
export type MigrationReport = (event: MigrationEvent) => void

/**
 * - `RAN`: the step is done
 * - `FAILED`: the step did not get its locks or its connection, and is tried again after the pause
 * - `BUILDING`: an index is being built, a few times a second
 */
export type MigrationEvent =
  | { readonly kind: 'RAN'; readonly step: string; readonly ms: number }
  | {
      readonly kind: 'FAILED'
      readonly step: string
      readonly error: Error
      readonly pauseMs: number
      /** Sessions that use the step's tables, the longest transaction first: `pid 17 (psql, idle in transaction, for 12 s)`. */
      readonly blockers: readonly string[]
    }
  | ({ readonly kind: 'BUILDING'; readonly step: string } & IndexProgress)

export interface IndexProgress {
  readonly index: string
  /** PostgreSQL's word, such as `building index: scanning table`; absent where the server tells none. */
  readonly phase?: string
  /** The part of the phase that is done, 0 to 1; absent where the server tells none. */
  readonly done?: number
  /** The session for whose transaction the build waits. */
  readonly waitsForPid?: number
  readonly seconds: number
}

/** One line for a person. */
export function describeEvent(event: MigrationEvent): string {
  switch (event.kind) {
    case 'RAN':
      return `${event.step}: done in ${(event.ms / 1_000).toFixed(1)} s`
    case 'FAILED': {
      const { step, error, pauseMs, blockers } = event
      const others = blockers.length === 0 ? '' : `; in the way: ${blockers.join(', ')}`
      return `${step}: ${error.message}${others}; tried again in ${pauseMs / 1_000} s`
    }
    case 'BUILDING': {
      const { step, index, phase, done, waitsForPid, seconds } = event
      const percent = done === undefined ? '' : ` ${Math.floor(done * 100)} %`
      const waits = waitsForPid === undefined ? '' : `, for pid ${waitsForPid}`
      return `${step}: index ${index}, ${phase ?? 'building'}${percent}${waits}, ${Math.floor(seconds)} s`
    }
  }
}
