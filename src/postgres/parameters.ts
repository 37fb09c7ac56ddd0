/** A parameter as it is sent to the server. */
export type ParameterText = string | Buffer | null

/**
 * Encodes a parameter: arrays as array literals, dates in UTC, bytes unchanged, other objects as JSON. (pg's own encoder writes dates in
 * the machine's time zone.)
 *
 * @throws TypeError for undefined
 */
export function toParameter(value: unknown): ParameterText {
  if (typeof value === 'string' || value === null) return value
  if (typeof value === 'number' || typeof value === 'bigint' || typeof value === 'boolean') return String(value)
  if (typeof value !== 'object') throw new TypeError(`a parameter cannot be ${typeof value}`)
  if (value instanceof Uint8Array) return toBuffer(value)
  if (value instanceof Date) return value.toISOString()
  return Array.isArray(value) ? arrayLiteral(value) : JSON.stringify(value)
}

function toBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

function arrayLiteral(values: readonly unknown[]): string {
  return `{${values.map(arrayElement).join(',')}}`
}

function arrayElement(value: unknown): string {
  if (Array.isArray(value)) return arrayLiteral(value)
  const text = toParameter(value)
  if (text === null) return 'NULL'
  // within an array literal a backslash is escaped by another
  if (typeof text !== 'string') return `"\\\\x${text.toString('hex')}"`
  return `"${text.replace(/[\\"]/g, '\\$&')}"`
}
