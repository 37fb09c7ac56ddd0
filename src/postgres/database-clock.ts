import type { Knex } from 'knex'
import type { Logger } from '../domain/logger.ts'
import { raw, readRows } from './statement.ts'

export type DatabaseClock = ReturnType<typeof createDatabaseClock>

/** A larger offset is worth a warning, in milliseconds: certificates, prices and quotes go by the clock of the machine. */
const MAX_OFFSET_MS = 5_000

/** Smaller changes of the offset are the time that the answers take, in milliseconds. */
const NOISE_MS = 250

/** An answer that takes longer says too little, in milliseconds. */
const MAX_ROUND_TRIP_MS = 1_000

/** The time of the database's clock, to the millisecond. @throws errors of the database */
export async function readDatabaseTime(knex: Knex, signal?: AbortSignal): Promise<Date> {
  const query = raw(`select (extract(epoch from clock_timestamp()) * 1000)::float8 as "nowMs"`)
  const [answer] = await readRows<{ nowMs: number }>(knex, query, signal)
  return new Date(answer?.nowMs ?? Number.NaN)
}

/**
 * Makes the clock that processes on one database share. Keys expire by it, and lags are measured with it, so that a machine whose clock is wrong decides
 * as the others do. Until the first measurement it is that of the machine.
 */
export function createDatabaseClock(knex: Knex, logger?: Logger) {
  let offsetMs = 0
  let isWarned = false

  function judge(): void {
    const isOff = Math.abs(offsetMs) > MAX_OFFSET_MS
    const fields = { offsetSeconds: offsetMs / 1_000 }
    if (isOff && !isWarned)
      logger?.warn(fields, "the machine's clock differs from the database's: keys and lags go by the database's")
    if (!isOff && isWarned) logger?.info(fields, "the machine's clock agrees with the database's again")
    isWarned = isOff
  }

  return {
    now: () => new Date(Date.now() + offsetMs),
    /** How far the database is ahead, in milliseconds. */
    offsetMs: () => offsetMs,
    /** How far it is ahead where that is too far; undefined else. */
    warnedMs: () => (isWarned ? offsetMs : undefined),
    /** Compares the two clocks. @throws errors of the database */
    async measure(signal?: AbortSignal): Promise<void> {
      const sentAtMs = performance.now()
      const now = await readDatabaseTime(knex, signal)
      const roundTripMs = performance.now() - sentAtMs
      if (roundTripMs > MAX_ROUND_TRIP_MS) return
      const measuredMs = now.getTime() + roundTripMs / 2 - Date.now()
      if (Math.abs(measuredMs - offsetMs) > NOISE_MS) offsetMs = Math.round(measuredMs)
      judge()
    },
  }
}
