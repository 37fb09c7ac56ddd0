import type { Writable } from 'node:stream'
import { pino } from 'pino'

/** Headers and settings that hold secrets. */
const SECRETS = new Set(['x-api-key', 'authorization', 'cookie', 'password', 'apiKey', 'databaseUrl'])

type Fields = Record<string, unknown>

/**
 * Creates the logger of the process: one line of JSON an entry.
 *
 * @param options.stream - receives the lines; standard error, because standard output is for results
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
 * Replaces secrets by `[secret]`, in the fields and one level below. pino's own redaction looks for every name in every value, which is half
 * the cost of a line, and most lines have no nested values at all.
 */
function hideSecrets(fields: Fields): Fields {
  for (const name in fields) {
    if (SECRETS.has(name) || isObject(fields[name])) return mapValues(fields, hideInField)
  }
  return fields
}

/** Leaves `err` alone: its fields are known only after its serializer ran, which hides secrets itself. */
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

/** Values that JSON writes field by field. */
function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !('toJSON' in value)
}
