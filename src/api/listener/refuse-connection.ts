import { randomUUID } from 'node:crypto'
import { STATUS_CODES } from 'node:http'
import type { Duplex, Readable, Stream } from 'node:stream'
import type { Logger } from '../../domain/logger.ts'
import type { WaybillError } from '../../errors/waybill-error.ts'
import type { Ending } from '../calls/call.ts'
import { codeName, httpErrorBody, wireFormOf } from '../calls/error-mapping.ts'
import type { RefusalLog } from '../calls/log-calls.ts'
import type { HeaderFields, RequestHandler } from '../http/exchange.ts'
import { errorHeaders } from '../http/http-answer.ts'
import type { AbuseCounter } from './abuse.ts'
import type { ConnectionLimits } from './connection-limits.ts'
import type { ConnectionShares } from './connection-shares.ts'

/** What the servers of a port work with. */
export interface ServerTerms extends Ending {
  readonly handle: RequestHandler
  /** The HTTP methods of all paths; sorted. */
  readonly httpMethods: readonly string[]
  /** The headers of answers to bytes that are not a request. */
  readonly commonHeaders: HeaderFields
  readonly limits: ConnectionLimits
  /** Whether many clients call from an address, such as a proxy's: it then has no limit of its own, and may cancel more calls. */
  readonly isManyClients: (address: string) => boolean
  readonly abuse: AbuseCounter
  readonly shares: ConnectionShares
  readonly logger: Logger
  readonly refusalLog: RefusalLog
}

/** How long a refused connection is read after the answer, in ms: closing at once would reset it and lose the answer. */
export const LINGER_MS = 2000

/** How many bytes are read meanwhile. */
const LINGER_BYTES = 128 * 1024

/** Answers bytes that are not a request with an error in HTTP/1.1, and closes the connection. */
export function refuseHttp1(
  error: WaybillError,
  socket: Duplex,
  { commonHeaders, logger, refusalLog }: ServerTerms,
): void {
  const { code, httpStatus: status } = wireFormOf(error.reason, 'rest')
  const requestId = randomUUID()
  const body = httpErrorBody(error)
  refusalLog.each(() => logger.info({ requestId, code: codeName(code), reason: error.reason }, 'request'))
  const headers = {
    ...commonHeaders,
    ...errorHeaders(error),
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    'x-request-id': requestId,
    connection: 'close',
  }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
  endAndLinger(socket, [`HTTP/1.1 ${status} ${STATUS_CODES[status]}`, ...lines, '', body].join('\r\n'))
}

/**
 * Tells an HTTP/2 client by GOAWAY that none of its streams was or will be processed, so that it may safely retry elsewhere.
 *
 * @param code - an error code of HTTP/2
 */
export function refuseHttp2(
  { message, code }: { readonly message: string; readonly code: number },
  socket: Duplex,
): void {
  const settings = frame(FRAME_SETTINGS, Buffer.alloc(0))
  const goaway = Buffer.alloc(8)
  goaway.writeUInt32BE(code, 4)
  endAndLinger(socket, Buffer.concat([settings, frame(FRAME_GOAWAY, Buffer.concat([goaway, Buffer.from(message)]))]))
}

/* RFC 9113, 6.5 and 6.8 */
const FRAME_SETTINGS = 0x4
const FRAME_GOAWAY = 0x7

/** The first of two GOAWAYs (RFC 9113, 6.8): it ends no stream, and asks to begin no more. */
export const GOAWAY_NOTICE = frame(FRAME_GOAWAY, Buffer.from([0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0]))

function endAndLinger(socket: Duplex, last: string | Buffer): void {
  socket.on('error', () => {})
  socket.end(last)
  // Keeps the bytes from the parser, which would fail again at every chunk.
  socket.removeAllListeners('data')
  readRest(socket, socket, LINGER_BYTES)
}

/** Reads and drops what still comes, up to a limit of time and of bytes. */
export function readRest(source: Readable, socket: Duplex, maxBytes: number): void {
  let bytes = 0
  source.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes > maxBytes) socket.destroy()
  })
  destroyAfter(LINGER_MS, socket, source)
}

/** Destroys a connection after some time, unless it or what it is about is closed before. */
export function destroyAfter(timeoutMs: number, socket: Duplex, about: Stream = socket): void {
  const timer = setTimeout(() => socket.destroy(), timeoutMs)
  about.once('close', () => clearTimeout(timer))
}

function frame(type: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head[3] = type
  return Buffer.concat([head, payload])
}
