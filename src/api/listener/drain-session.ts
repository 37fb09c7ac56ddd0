import { constants, type ServerHttp2Session } from 'node:http2'
import type { Socket } from 'node:net'

/** How a connection of HTTP/2 is drained. */
export interface DrainTerms {
  readonly socket: Socket
  /** Sent with GOAWAY, for the logs of clients. */
  readonly why: string
  /** How long the calls in flight may take to finish, in milliseconds. */
  readonly graceMs: number
  /** How much the client may send meanwhile: of streams that it begins nothing is served any more, but they take our time. */
  readonly maxBytes: number
  /** The grace period is over, or the client sends too much: the connection is to be cut. */
  readonly onOverrun: () => void
}

/** How often it is looked how much has come, in milliseconds. */
const LOOK_MS = 50

/**
 * Takes no new streams; those in flight go on. GOAWAY says NO_ERROR, since some clients, such as Node's, break off their calls when it
 * names an error. The session is not closed here: Node would then leave the end of the connection to the client.
 */
export function drainSession(session: ServerHttp2Session, terms: DrainTerms): void {
  const { socket, graceMs, maxBytes, onOverrun } = terms
  const readAtStart = socket.bytesRead
  const endAtMs = performance.now() + graceMs
  const look = setInterval(() => {
    if (socket.bytesRead - readAtStart > maxBytes || performance.now() > endAtMs) onOverrun()
  }, LOOK_MS)
  socket.once('close', () => clearInterval(look))
  session.goaway(constants.NGHTTP2_NO_ERROR, 0, Buffer.from(terms.why))
}
