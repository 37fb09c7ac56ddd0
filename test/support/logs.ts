import type { Logger } from '../../src/domain/logger.ts'

/** Logs nothing. */
export const silentLogger: Logger = { debug() {}, info() {}, warn() {}, error() {} }

/** A logger that keeps what it is told, for tests that look at it and for those that want silence. */
export interface LogRecord {
  level: 'debug' | 'info' | 'warn' | 'error'
  fields: object
  message: string
}

export interface LogRecorder {
  records: readonly LogRecord[]
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

export function recordLogs(): LogRecorder {
  const records: LogRecord[] = []
  const at = (level: LogRecord['level']) => (fields: object, message: string) => {
    records.push({ level, fields, message })
  }
  return { records, debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}
