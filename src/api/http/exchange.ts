import type { IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http'
import { constants, type ServerHttp2Stream } from 'node:http2'
import type { Readable } from 'node:stream'
import { waybillError } from '../../errors/waybill-error.ts'
import type { Holder } from '../calls/shares.ts'

/** Maximum size of request line and headers together. */
export const MAX_HEADER_BYTES = 64 * 1024

/** Maximum number of headers of a request. */
export const MAX_HEADERS = 500

/** Header fields to send, by names in lower case. */
export type HeaderFields = Record<string, string>

/** Answers every request of the port. Never rejects. */
export type RequestHandler = (exchange: Exchange) => Promise<void>

/** An answer that is sent as a whole. */
export interface WholeAnswer {
  readonly status: number
  readonly headers: HeaderFields
  readonly body?: Uint8Array | string | undefined
  readonly trailers?: HeaderFields | undefined
}

export interface AnswerHead {
  readonly status: number
  readonly headers: HeaderFields
  readonly hasTrailers: boolean
}

/** Sends an answer piece by piece. */
export interface AnswerWriter {
  /** Resolves when there is space for more; rejects with CALL_CANCELLED when the caller is gone. */
  readonly write: (chunk: Uint8Array) => Promise<void>
  readonly end: (trailers?: HeaderFields) => void
}

/** An HTTP request and its answer, the same for HTTP/1.1 and HTTP/2. */
export interface Exchange {
  readonly httpVersion: '1.1' | '2'
  readonly method: string
  /** The request target without the query, as it was sent. */
  readonly rawPath: string
  /** The query without its question mark, as it was sent; empty for none. */
  readonly rawQuery: string
  readonly headers: IncomingHttpHeaders
  /** The host and port that were asked for; empty when the request names none. */
  readonly authority: string
  /** The address at the other end of the connection; empty when the connection is gone. */
  readonly peerAddress: () => string
  /** Whether a body may follow. */
  readonly hasBody: boolean
  readonly body: Readable
  /** How much of the body has been read. */
  readonly received: { bytes: number }
  /** Tells a client that waits for it (`Expect: 100-continue`) to send its body. To be called before the body is read. */
  readonly askForBody: () => void
  /** Whether a body that has ended is incomplete. */
  readonly isCutOff: () => boolean
  /** Has the connection end after the answer, if it has not begun. */
  readonly endConnection: () => void
  /** Says who makes the request, once it is known: its connection belongs to them. */
  readonly holdConnectionFor: (holder: Holder) => void
  /** Calls back at most once, if the caller is gone before the answer is complete; at once if it is gone already. */
  readonly onHangUp: (listener: () => void) => void
  /** Sends an answer. Does nothing when the caller is gone or an answer was begun. */
  readonly send: (answer: WholeAnswer) => void
  /** Begins an answer. It may end with trailers only if the head says so. */
  readonly begin: (head: AnswerHead) => AnswerWriter
  /** The status that was sent; 0 for none. */
  readonly sentStatus: () => number
  /** Breaks off an incomplete answer, so that the caller can tell it from a complete one. */
  readonly abandon: () => void
}

/** Splits a request target. Proxies may send an absolute one: `http://host/path?query`. */
export function splitTarget(target: string): { readonly rawPath: string; readonly rawQuery: string } {
  const local = target.startsWith('/') ? target : target.replace(/^https?:\/\/[^/?#]*/i, '')
  const question = local.indexOf('?')
  if (question < 0) return { rawPath: local === '' ? '/' : local, rawQuery: '' }
  return { rawPath: question === 0 ? '/' : local.slice(0, question), rawQuery: local.slice(question + 1) }
}

export function http1Exchange(
  request: IncomingMessage,
  response: ServerResponse,
  holdConnectionFor: Exchange['holdConnectionFor'],
  /** Whether to close the connection after the answer. */
  isDraining: () => boolean,
): Exchange {
  const { headers } = request
  const hangUp = hangUpSignal()
  response.on('close', () => {
    if (!response.writableFinished) hangUp.fire()
  })
  request.on('error', () => {})
  response.on('error', () => {})
  let isLast = false
  const prepare = (status: number, fields: HeaderFields, trailers?: HeaderFields) => {
    if (isLast || isDraining()) fields.connection = 'close'
    if (trailers !== undefined) fields.trailer = Object.keys(trailers).join(', ')
    response.writeHead(status, fields)
  }
  return {
    httpVersion: '1.1',
    method: request.method ?? '',
    ...splitTarget(request.url ?? '/'),
    headers,
    authority: headers.host ?? '',
    peerAddress: () => request.socket.remoteAddress ?? '',
    hasBody: headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0,
    body: request,
    received: { bytes: 0 },
    endConnection() {
      isLast = true
    },
    holdConnectionFor,
    askForBody() {
      // HTTP/1.0 has no such answer.
      if (request.httpVersion === '1.1' && waitsForContinue(headers) && !response.headersSent) response.writeContinue()
    },
    isCutOff: () => !request.complete,
    onHangUp: hangUp.listen,
    send({ status, headers, body, trailers }) {
      if (response.headersSent || response.destroyed) return
      const fields = { ...headers }
      // An answer with trailers is sent in chunks, without a length.
      if (trailers === undefined) setLength(fields, status, body)
      prepare(status, fields, trailers)
      if (trailers !== undefined) {
        if (body !== undefined && body.length > 0) response.write(body)
        response.addTrailers(trailers)
        response.end()
      } else response.end(body)
    },
    begin({ status, headers }) {
      prepare(status, { ...headers })
      response.flushHeaders()
      return {
        write: (chunk) => writeTo(response, chunk),
        end(trailers) {
          if (trailers !== undefined) response.addTrailers(trailers)
          response.end()
        },
      }
    },
    sentStatus: () => (response.headersSent ? response.statusCode : 0),
    abandon() {
      if (!response.writableEnded) response.destroy()
    },
  }
}

export function http2Exchange(
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
  ofConnection: Pick<Exchange, 'hasBody' | 'endConnection' | 'holdConnectionFor'>,
): Exchange {
  const method = pseudo(headers, ':method')
  const hangUp = hangUpSignal()
  let begun = false
  let completed = false
  // A reset ends the writable side as well, so `completed` tells whether the answer was.
  stream.on('close', () => {
    if (!completed) hangUp.fire()
  })
  stream.on('error', () => {})
  // Refuses the rest of a body that is no longer read: it would keep the stream open.
  const refuseRest = () => {
    if (!stream.readableEnded && !stream.closed) stream.close(constants.NGHTTP2_NO_ERROR)
  }
  /** Begins the answer. Trailers are asked for when the body has ended. */
  const respond = (fields: OutgoingHttpHeaders, trailers: (() => HeaderFields) | undefined, endStream: boolean) => {
    stream.respond(fields, { waitForTrailers: trailers !== undefined, endStream })
    begun = true
    if (trailers === undefined) stream.once('finish', refuseRest)
    else {
      stream.once('wantTrailers', () => {
        stream.sendTrailers(trailers())
        // Once they are written: a reset would overtake them.
        setImmediate(refuseRest)
      })
    }
  }
  return {
    httpVersion: '2',
    method,
    ...splitTarget(pseudo(headers, ':path')),
    headers,
    authority: pseudo(headers, ':authority') || (headers.host ?? ''),
    peerAddress: () => stream.session?.socket?.remoteAddress ?? '',
    ...ofConnection,
    body: stream,
    received: { bytes: 0 },
    askForBody() {
      if (waitsForContinue(headers) && !begun && !stream.destroyed) stream.additionalHeaders({ ':status': 100 })
    },
    // A reset ends the readable side in the same way as a proper end.
    isCutOff: () => stream.aborted || (stream.rstCode ?? 0) !== 0,
    onHangUp: hangUp.listen,
    send({ status, headers, body, trailers }) {
      if (begun || stream.destroyed || stream.closed) return
      const fields: Record<string, string | number> = { ':status': status, ...headers }
      if (trailers === undefined) setLength(fields, status, body)
      const isBare = trailers === undefined && (method === 'HEAD' || body === undefined || body.length === 0)
      respond(fields, trailers && (() => trailers), isBare)
      completed = true
      if (!isBare) stream.end(body)
    },
    begin({ status, headers, hasTrailers }) {
      if (begun || stream.destroyed || stream.closed) return goneWriter
      let trailers: HeaderFields = {}
      respond({ ':status': status, ...headers }, hasTrailers ? () => trailers : undefined, false)
      return {
        write: (chunk) => writeTo(stream, chunk),
        end(last = {}) {
          completed = true
          trailers = last
          stream.end()
        },
      }
    },
    sentStatus: () => Number(stream.sentHeaders?.[':status'] ?? 0),
    abandon() {
      if (!completed && !stream.closed) stream.close(constants.NGHTTP2_INTERNAL_ERROR)
    },
  }
}

function waitsForContinue({ expect }: IncomingHttpHeaders): boolean {
  // As Node recognises it.
  return expect !== undefined && /(?:^|\W)100-continue(?:$|\W)/i.test(expect)
}

function setLength(
  fields: Record<string, string | number>,
  status: number,
  body: Uint8Array | string | undefined,
): void {
  if (status === 204 || status === 304) return
  fields['content-length'] ??= body === undefined ? '0' : String(Buffer.byteLength(body))
}

const goneWriter: AnswerWriter = {
  write: () => Promise.reject(waybillError('CALL_CANCELLED', {})),
  end() {},
}

function pseudo(headers: IncomingHttpHeaders, name: string): string {
  const value = headers[name]
  return typeof value === 'string' ? value : ''
}

/** Tells those who listen once that the caller is gone. */
export function hangUpSignal() {
  let fired = false
  let listeners: (() => void)[] = []
  return {
    fire: () => {
      fired = true
      for (const listener of listeners) listener()
      listeners = []
    },
    listen: (listener: () => void) => {
      if (fired) listener()
      else listeners.push(listener)
    },
  }
}

async function writeTo(stream: ServerResponse | ServerHttp2Stream, chunk: Uint8Array): Promise<void> {
  if (stream.destroyed) throw waybillError('CALL_CANCELLED', {})
  if (stream.write(chunk)) return
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const onDrain = () => resolve()
  const onClose = () => reject(waybillError('CALL_CANCELLED', {}))
  stream.once('drain', onDrain)
  stream.once('close', onClose)
  try {
    await promise
  } finally {
    stream.off('drain', onDrain)
    stream.off('close', onClose)
  }
}

/**
 * Breaks off an answer when its call has ended and its reader takes nothing: the writer would wait for space for ever.
 *
 * @param ended - aborts when the call ends before its answer is complete
 * @param drainMs - how long the reader then has to make space for the end
 * @returns to be called when the answer is complete
 */
export function breakOffStuck(exchange: Exchange, ended: AbortSignal, drainMs: number): () => void {
  let timer: NodeJS.Timeout | undefined
  const onEnded = () => {
    timer = setTimeout(exchange.abandon, drainMs)
  }
  if (ended.aborted) onEnded()
  else ended.addEventListener('abort', onEnded, { once: true })
  return () => {
    ended.removeEventListener('abort', onEnded)
    clearTimeout(timer)
  }
}
