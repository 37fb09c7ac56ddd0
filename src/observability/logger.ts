import type { Writable } from 'node:stream'
import { pino } from 'pino'

/** The headers and settings that hold secrets, wherever they stand in what is logged. */
const SECRETS = ['x-api-key', 'authorization', 'cookie', 'password', 'apiKey', 'databaseUrl']

/**
 * Makes the process's logger: a line of JSON an entry.
 *
 * @param options.stream - where the lines go; standard error, so that results stand alone on standard output
 */
export function createLogger({ level, stream }: { readonly level: string; readonly stream: Writable }) {
  return pino(
    {
      level,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      base: null,
      redact: { paths: SECRETS.flatMap((name) => [`["${name}"]`, `*["${name}"]`]), censor: '[secret]' },
    },
    stream,
  )
}
