import { constants, type ServerHttp2Session } from 'node:http2'
import type { Socket } from 'node:net'

/** How an HTTP/2 connection is drained. */
export interface DrainTerms {
  readonly socket: Socket
  /** Sent with GOAWAY, for the logs of clients. */
  readonly why: string
  /** How long the calls in flight may take to finish, in milliseconds. */
  readonly graceMs: number
  /** Called when the grace period is over or the client sends too much. It must end the connection. */
  readonly onOverrun: () => void
}

/**
 * How much the client may send meanwhile. Streams that it begins are not served any more, but take time to read. It is enough for the rest
 * of the requests that have begun; nghttp2 itself stops reading after 10,000 ignored streams.
 */
const MAX_BYTES = 512 * 1024

/** How often the bytes read are checked, in milliseconds. */
const LOOK_MS = 50

/**
 * Accepts no new streams; those in flight continue. GOAWAY says NO_ERROR, since some clients, such as Node's, cancel their calls if it
 * names an error. The session is not closed here: Node would then leave it to the client to close the connection.
 */
export function drainSession(session: ServerHttp2Session, terms: DrainTerms): void {
  const { socket, graceMs, onOverrun } = terms
  const readAtStart = socket.bytesRead
  const endAtMs = performance.now() + graceMs
  const look = setInterval(() => {
    if (socket.bytesRead - readAtStart > MAX_BYTES || performance.now() > endAtMs) onOverrun()
  }, LOOK_MS)
  socket.once('close', () => clearInterval(look))
  session.goaway(constants.NGHTTP2_NO_ERROR, 0, Buffer.from(terms.why))
}
