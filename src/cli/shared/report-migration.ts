import type { Writable } from 'node:stream'
import type { Logger } from '../../domain/logger.ts'
import { describeEvent, type MigrationReport } from '../../postgres/migrations/migration-report.ts'

/** How often the building of an index is reported where lines stay. */
const TELL_EVERY_MS = 10_000
const CLEAR_LINE = '\r\x1b[K'

/** Tells a person how a migration goes: on a terminal the building of an index is one line that changes. */
export function tellMigration(stderr: Writable & { readonly isTTY?: boolean }, nowMs: () => number): MigrationReport {
  const isTerminal = stderr.isTTY === true
  const isDue = everyMs(TELL_EVERY_MS, nowMs)
  return (event) => {
    const start = isTerminal ? CLEAR_LINE : ''
    if (event.kind === 'FAILED') stderr.write(`${start}${describeEvent(event)}\n`)
    else if (event.kind === 'RAN') stderr.write(start)
    else if (isTerminal) stderr.write(`${start}${describeEvent(event)}`)
    else if (isDue()) stderr.write(`${describeEvent(event)}\n`)
  }
}

/** Logs how a migration goes; steps that take no time are not worth a line. */
export function logMigration(logger: Logger, nowMs: () => number): MigrationReport {
  const isDue = everyMs(TELL_EVERY_MS, nowMs)
  return (event) => {
    const { kind, ...fields } = event
    if (kind === 'FAILED') logger.warn(fields, 'a step of the schema waits and is tried again')
    else if (kind === 'BUILDING' && isDue()) logger.info(fields, 'an index is built')
    else if (kind === 'RAN' && event.ms >= 1_000) logger.info(fields, 'a step of the schema ran')
  }
}

/** @returns whether the time since the last yes is over; the first answer is no */
export function everyMs(intervalMs: number, nowMs: () => number): () => boolean {
  let lastMs = nowMs()
  return () => {
    if (nowMs() - lastMs < intervalMs) return false
    lastMs = nowMs()
    return true
  }
}
