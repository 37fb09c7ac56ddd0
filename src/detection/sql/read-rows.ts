import type { Knex } from 'knex'
import { addressFromBytes } from '../../domain/address.ts'
import { bytesToHex } from '../../domain/hex.ts'

/** How the bytes of a column are written; those of all others as `0x` and digits. */
const writers: Readonly<Record<string, (bytes: Uint8Array) => string>> = {
  address: addressFromBytes,
  initiator: addressFromBytes,
  payee: addressFromBytes,
  payer: addressFromBytes,
  recipient: addressFromBytes,
  refund_address: addressFromBytes,
  token_address: addressFromBytes,
  request_id: (bytes) => bytesToHex(bytes).slice(2),
}

const fieldsByColumn = new Map<string, string>()

/**
 * Reads rows as objects with the fields of an interface: the column `block_number` is the field `blockNumber`, null is undefined, a bigint a number.
 * Bytes are an address or the digits of a request's id by the column's name, else `0x` and digits. Texts, times and JSON stay as they are.
 */
export function readRows<T>(rows: readonly object[]): T[] {
  return rows.map((row) => {
    const fields: Record<string, unknown> = {}
    for (const [column, value] of Object.entries(row)) fields[fieldOf(column)] = readValue(column, value)
    return fields as T
  })
}

/** Runs a statement. @returns its rows, by {@link readRows} */
export async function queryRows<T>(
  knex: Knex,
  sql: string,
  bindings: Knex.RawBinding[] | Knex.ValueDict,
): Promise<T[]> {
  const { rows } = await knex.raw<{ rows: object[] }>(sql, bindings)
  return readRows(rows)
}

function fieldOf(column: string): string {
  const known = fieldsByColumn.get(column)
  if (known !== undefined) return known
  const field = column.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
  fieldsByColumn.set(column, field)
  return field
}

function readValue(column: string, value: unknown): unknown {
  if (value === null) return undefined
  if (typeof value === 'bigint') return Number(value)
  return value instanceof Uint8Array ? (writers[column] ?? bytesToHex)(value) : value
}
