import type { Writable } from 'node:stream'
import { pino } from 'pino'

/** The headers and settings that hold secrets, wherever they stand in what is logged. */
const SECRETS = new Set(['x-api-key', 'authorization', 'cookie', 'password', 'apiKey', 'databaseUrl'])

type Fields = Record<string, unknown>

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
      formatters: { level: (label) => ({ level: label }), log: hideSecrets },
      serializers: { err: (error: Error) => hideBelow(pino.stdSerializers.err(error)) },
      base: null,
    },
    stream,
  )
}

/**
 * Puts `[secret]` in the place of what is secret among the fields and one below them. pino's own redaction looks for every name in every
 * value, which is half of what a line costs, and most lines have nothing to look into.
 */
function hideSecrets(fields: Fields): Fields {
  for (const name in fields) {
    if (SECRETS.has(name) || isObject(fields[name])) return mapValues(fields, hideInField)
  }
  return fields
}

/** But for `err`: what an error carries is known only once its serializer has written it out. */
function hideInField(value: unknown, name: string): unknown {
  return name === 'err' ? value : hideBelow(value)
}

function hideBelow<T>(value: T): T | Fields {
  return isObject(value) ? mapValues(value, (below) => below) : value
}

function mapValues(fields: Fields, map: (value: unknown, name: string) => unknown): Fields {
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [name, SECRETS.has(name) ? '[secret]' : map(value, name)]),
  )
}

/** What is written name by name. */
function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !('toJSON' in value)
}
