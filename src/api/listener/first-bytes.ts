import type { Socket } from 'node:net'

export type HttpVersion = '1.1' | '2'

/** What a client may speak on a port. */
export type Protocol = HttpVersion | 'tls'

/** The type of a TLS record that holds a handshake (RFC 8446, 5.1). */
const TLS_HANDSHAKE = 22

/**
 * Tells by its first bytes what a connection speaks. A TLS handshake begins with 22 and HTTP/2 with `PRI `; no HTTP/1.1 request begins
 * with either.
 *
 * @param seen - the bytes so far; at least one
 * @returns undefined while more bytes are needed
 */
export function protocolOf(seen: Buffer): Protocol | undefined {
  return seen[0] === TLS_HANDSHAKE ? 'tls' : versionOf(seen)
}

const HTTP2_START = Buffer.from('PRI ')

/** As {@link protocolOf}, within a TLS connection. */
export function versionOf(seen: Buffer): HttpVersion | undefined {
  const start = seen.subarray(0, HTTP2_START.length)
  if (!HTTP2_START.subarray(0, start.length).equals(start)) return '1.1'
  return start.length === HTTP2_START.length ? '2' : undefined
}

export interface FirstBytesOptions<T> {
  /** How long the bytes may take, in milliseconds. */
  readonly timeoutMs: number
  /** Decides by the bytes so far; undefined while more are needed. */
  readonly read: (seen: Buffer) => T | undefined
  /** Called once decided. The bytes have been put back. */
  readonly onDecided: (what: T) => void
  /** Called if the connection ends or the time is up before it is decided. The connection is closed. */
  readonly onSilent: () => void
}

/** Reads the first bytes of a connection until they decide something, and puts them back. */
export function readFirstBytes<T>(socket: Socket, options: FirstBytesOptions<T>): void {
  const { timeoutMs, read, onDecided, onSilent } = options
  let seen = Buffer.alloc(0)
  const giveUp = () => {
    onSilent()
    socket.destroy()
  }
  let lastChance: NodeJS.Immediate | undefined
  // If this process was held up itself, the bytes that arrived meanwhile are read first.
  const timer = setTimeout(() => {
    lastChance = setImmediate(giveUp)
  }, timeoutMs)
  const onReadable = () => {
    const chunk = socket.read() as Buffer | null
    if (chunk !== null) seen = Buffer.concat([seen, chunk])
    const what = seen.length === 0 ? undefined : read(seen)
    if (what === undefined) return
    clearTimeout(timer)
    clearImmediate(lastChance)
    socket.off('readable', onReadable).off('end', giveUp).off('error', giveUp)
    socket.unshift(seen)
    onDecided(what)
  }
  socket.on('readable', onReadable).on('end', giveUp).on('error', giveUp)
  socket.once('close', () => clearTimeout(timer))
}
