import type { BackupSequence, BackupTable } from './backup-tables.ts'
import type { TableSum } from './row-checksum.ts'

/**
 * A backup is a text in UTF-8, packed with gzip:
 *
 * 1. a line of JSON: {@link BackupHeader}
 * 2. for each table of the header, in its order: the rows in the text format of COPY, the line `\.`, and a line of JSON: {@link TableEnd}
 * 3. a line of JSON: {@link BackupEnd}
 */

/** Increase it when the form changes, so that older releases refuse new files. */
export const FORMAT = 1

export interface BackupHeader {
  readonly waybill: 'backup'
  readonly format: number
  /** ISO 8601 */
  readonly takenAt: string
  /** The steps of the schema that the database had, in order. */
  readonly steps: readonly string[]
  readonly tables: readonly BackupTable[]
  readonly sequences: readonly BackupSequence[]
}

/** Stands behind the rows of a table. */
export interface TableEnd extends TableSum {
  readonly table: string
}

export interface BackupEnd {
  readonly end: true
  /** SHA-256 of everything before this line, in hex. */
  readonly sha256: string
}

/** Stands behind the last row. No row is like it, because COPY doubles backslashes. */
export const ROWS_END = '\\.\n'

/** A backup cannot be written or read. The message says what to do. */
export class BackupError extends Error {
  override readonly name = 'BackupError'
}

/** The file is not what was written. */
export function damaged(why: string, cause?: unknown): BackupError {
  return new BackupError(`the file is damaged (${why}): take another copy of it, or another backup`, { cause })
}

/** Parses the first line. @throws BackupError for another file, or one of a newer release */
export function parseHeader(line: string): BackupHeader {
  const header = parseLine(line) as Partial<BackupHeader> | undefined
  if (header?.waybill !== 'backup') throw new BackupError('the file is no backup that "waybill backup" has written')
  if (header.format !== FORMAT) {
    throw new BackupError(
      `the backup has format ${String(header.format)}, and this release reads format ${FORMAT}: use the release that wrote it, or a later one`,
    )
  }
  return header as BackupHeader
}

/** @throws BackupError where the line is not the end of `table` */
export function parseTableEnd(line: string | undefined, table: string): TableSum {
  const end = parseLine(line) as Partial<TableEnd> | undefined
  if (end?.table !== table || typeof end.rows !== 'number' || typeof end.checksum !== 'string') {
    throw damaged(`the sum of the table ${table} is missing`)
  }
  return { rows: end.rows, checksum: end.checksum }
}

/** @returns the SHA-256 of what stands before the line */
export function parseEnd(line: string | undefined): string {
  const end = parseLine(line) as Partial<BackupEnd> | undefined
  if (end?.end !== true || typeof end.sha256 !== 'string') throw damaged('its last line is missing')
  return end.sha256
}

export function formatLine(value: BackupHeader | TableEnd | BackupEnd): Buffer {
  return Buffer.from(`${JSON.stringify(value)}\n`)
}

function parseLine(line: string | undefined): unknown {
  try {
    return JSON.parse(line ?? '') ?? undefined
  } catch {
    return undefined
  }
}
