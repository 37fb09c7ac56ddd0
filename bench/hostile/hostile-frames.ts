/** HTTP/2 frames as bytes, for attacks that client libraries cannot make and that must cost the attacker little. */

/** RFC 9113, 6 */
export const frameTypes = {
  data: 0,
  headers: 1,
  priority: 2,
  reset: 3,
  settings: 4,
  ping: 6,
  windowUpdate: 8,
  continuation: 9,
} as const

export const END_STREAM = 0x1
export const END_HEADERS = 0x4

export const NO_BYTES = Buffer.alloc(0)

export function frame(type: number, flags: number, stream: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head[3] = type
  head[4] = flags
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, payload])
}

/** The preface of a connection. @param settings - pairs of number and value */
export function preface(settings: readonly (readonly [number, number])[] = []): Buffer {
  const payload = Buffer.alloc(6 * settings.length)
  settings.forEach(([name, value], n) => {
    payload.writeUInt16BE(name, 6 * n)
    payload.writeUInt32BE(value, 6 * n + 2)
  })
  return Buffer.concat([Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), frame(frameTypes.settings, 0, 0, payload)])
}

/** SETTINGS_INITIAL_WINDOW_SIZE */
export const INITIAL_WINDOW = 4

/** Encodes fields as literals without indexing (RFC 7541, 6.2.2), so that each block is independent of the others. */
export function fieldBlock(fields: Readonly<Record<string, string>>): Buffer {
  return Buffer.concat(
    Object.entries(fields).flatMap(([name, value]) => [Buffer.from([0]), textOf(name), textOf(value)]),
  )
}

function textOf(text: string): Buffer {
  return Buffer.concat([lengthOf(text.length), Buffer.from(text, 'latin1')])
}

/** An integer with a prefix of seven bits (RFC 7541, 5.1). */
function lengthOf(length: number): Buffer {
  if (length < 127) return Buffer.from([length])
  const bytes = [127]
  let rest = length - 127
  for (; rest >= 128; rest >>>= 7) bytes.push((rest & 127) | 128)
  return Buffer.from([...bytes, rest])
}

export function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}
