import type { Logger } from '../../src/domain/logger.ts'

/** Logs nothing. */
export const silentLogger: Logger = { debug() {}, info() {}, warn() {}, error() {} }

export interface LogRecord {
  level: 'debug' | 'info' | 'warn' | 'error'
  fields: object
  message: string
}

/** A logger that keeps its records. */
export interface LogRecorder extends Logger {
  records: readonly LogRecord[]
}

export function recordLogs(): LogRecorder {
  const records: LogRecord[] = []
  const at = (level: LogRecord['level']) => (fields: object, message: string) => {
    records.push({ level, fields, message })
  }
  return { records, debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}
