import { once } from 'node:events'
import { constants, createBrotliCompress, createGzip } from 'node:zlib'
import type { Message } from '@bufbuild/protobuf'
import { within } from '../../domain/within.ts'
import { WaybillError, waybillError } from '../../errors/waybill-error.ts'
import type { Route } from '../../transcoding/transcoder.ts'
import type { Answers } from '../calls/call.ts'
import type { CallableMethod, StreamAnswer } from '../calls/call-core.ts'
import type { StreamFormat } from '../calls/served-method.ts'
import { type AnswerWriter, breakOffStuck, type Exchange, type HeaderFields, hangUpSignal } from '../http/exchange.ts'
import {
  type ContentEncoding,
  chooseEncoding,
  fieldsOf,
  type Inbound,
  sendHttpError,
  UNBUFFERED,
} from '../http/http-answer.ts'
import { chooseStreamFormat } from './stream-format.ts'

export interface RestStreamOptions {
  /** After how much silence a heartbeat is sent. */
  readonly heartbeatMs: number
  /** How long a reader that takes nothing has to make space for the end of a stream. */
  readonly drainMs: number
  /** Aborts when the listener is to stop. */
  readonly stopping: AbortSignal
}

/** A call of a method by one of its routes. */
export interface RestCall {
  readonly method: CallableMethod
  readonly route: Route
  readonly readRequest: () => Promise<Message>
}

/**
 * Answers a call with a stream of JSON lines or server-sent events. The headers are sent with the first message or the first heartbeat, so that
 * a failure before is an ordinary error with its HTTP status.
 */
export async function serveStream(inbound: Inbound, call: RestCall, options: RestStreamOptions): Promise<void> {
  const { exchange } = inbound
  // Ends the call when the caller hangs up, or earlier.
  const hangUp = hangUpSignal()
  exchange.onHangUp(hangUp.fire)
  let format: StreamFormat | undefined
  try {
    const answered = await call.method.callStream({
      ...inbound,
      protocol: 'rest',
      readTicket: () => new URLSearchParams(exchange.rawQuery).get('ticket'),
      readRequest: async () => {
        const read = await readInFormat(exchange, call)
        format = read.format
        return read.request
      },
      onHangUp: hangUp.listen,
      stopping: options.stopping,
    })
    const source = readAhead(answered.answers)
    try {
      await source.next(options.heartbeatMs)
      if (format === undefined) throw new TypeError('a stream was answered before its request was read')
      const stream = { inbound, call, answered, format }
      if (exchange.method === 'HEAD')
        exchange.begin({ status: 200, headers: headersOf(stream), hasTrailers: false }).end()
      else await sendStream(stream, source, options)
    } finally {
      hangUp.fire()
      source.leave()
    }
  } catch (error) {
    if (!(error instanceof WaybillError)) throw error
    sendHttpError(inbound, error)
  }
}

/** Reads the request and chooses the format of its answer. A method with forms of its own chooses by the request. */
async function readInFormat({ headers: { accept } }: Exchange, { method: { chooseForm }, readRequest }: RestCall) {
  if (chooseForm === undefined) {
    const format = chooseStreamFormat(accept)
    return { format, request: await readRequest() }
  }
  const request = await readRequest()
  return { format: chooseForm(accept, request), request }
}

/** A stream whose headers are to be sent. */
interface OpenStream {
  readonly inbound: Inbound
  readonly call: RestCall
  readonly answered: StreamAnswer
  readonly format: StreamFormat
}

async function sendStream(stream: OpenStream, source: Source, options: RestStreamOptions): Promise<void> {
  const { inbound, answered } = stream
  const { exchange } = inbound
  const encoding = chooseEncoding(exchange.headers['accept-encoding']?.toString())
  const coding: HeaderFields = encoding === undefined ? {} : { 'content-encoding': encoding }
  const writer = exchange.begin({ status: 200, headers: { ...headersOf(stream), ...coding }, hasTrailers: false })
  const compressor = encoding && createStreamCompressor(encoding)
  const release = breakOffStuck(exchange, answered.signal, options.drainMs)
  let failure: Error | undefined
  try {
    const onUnencodable = (cause: unknown) => {
      failure = new Error('a message of the stream cannot be encoded', { cause })
    }
    const texts = textsOf(stream, source, { heartbeatMs: options.heartbeatMs, onUnencodable })
    for await (const text of texts) await writePiece(writer, compressor, text)
    if (compressor !== undefined) await writer.write(await compressor.finish())
    writer.end()
    // The call core does not know of a message that could not be encoded, so it is logged further up.
    if (failure !== undefined) throw failure
  } catch (error) {
    // The reader is gone. The call core knows, too, and ends the call.
    if (!(error instanceof WaybillError)) throw error
  } finally {
    release()
    compressor?.close()
  }
}

/**
 * The pieces of the body. Each message is taken when the reader has space for it.
 *
 * @param terms.onUnencodable - called with the cause if a message cannot be encoded; the body then ends with INTERNAL
 */
async function* textsOf(
  { call, format }: OpenStream,
  source: Source,
  { heartbeatMs, onUnencodable }: { readonly heartbeatMs: number; readonly onUnencodable: (cause: unknown) => void },
): AsyncGenerator<string> {
  const { method, route } = call
  const encode = (answer: object) => {
    try {
      return format.message(answer, route.encodeResponse, method.eventIdOf?.(answer))
    } catch (cause) {
      onUnencodable(cause)
      return undefined
    }
  }
  yield format.begin ?? ''
  for (;;) {
    const result = await source.next(heartbeatMs).catch(asFailure)
    if (result === undefined) yield format.heartbeat
    else if (result instanceof WaybillError) return yield format.error(result)
    else if (result.done === true) return yield format.end
    else {
      source.take()
      const text = encode(result.value)
      if (text === undefined) return yield format.error(waybillError('INTERNAL', {}))
      yield text
    }
  }
}

function headersOf({ inbound: { commonHeaders }, answered, format }: OpenStream): HeaderFields {
  return {
    ...commonHeaders,
    vary: `accept, ${commonHeaders.vary ?? ''}`,
    'cache-control': 'no-store',
    ...UNBUFFERED,
    ...fieldsOf(answered.header()),
    ...format.headers,
    'content-type': format.contentType,
  }
}

async function writePiece(writer: AnswerWriter, compressor: StreamCompressor | undefined, text: string): Promise<void> {
  if (text === '') return
  await writer.write(compressor === undefined ? Buffer.from(text) : await compressor.compress(text))
}

function asFailure(error: unknown): WaybillError {
  if (error instanceof WaybillError) return error
  throw error
}

type Source = ReturnType<typeof readAhead>

/** The answers of a stream. The next one can be awaited several times. */
function readAhead(answers: Answers) {
  const iterator = answers[Symbol.asyncIterator]()
  let pending: Promise<IteratorResult<object>> | undefined
  const read = () => {
    const result = iterator.next()
    // It may reject while nobody awaits it.
    result.catch(() => {})
    return result
  }
  return {
    /** The next answer, the same until it is taken; undefined when it does not come in time. */
    next(timeoutMs: number): Promise<IteratorResult<object> | undefined> {
      pending ??= read()
      return within(timeoutMs, pending, () => undefined)
    },
    take: () => {
      pending = undefined
    },
    leave: () => {
      // Not awaited: a handler that ignores its signal would hold up the end.
      iterator.return?.()?.catch(() => {})
    },
  }
}

type StreamCompressor = ReturnType<typeof createStreamCompressor>

/** A window of 64 KiB is enough for messages that repeat their names, and bounds the memory of a thousand streams. */
const BROTLI_WINDOW_BITS = 16
const BROTLI_QUALITY = 4

/** Makes what compresses a body whose pieces can be read as they arrive. */
function createStreamCompressor(encoding: ContentEncoding) {
  const stream = encoding === 'gzip' ? createGzip() : createBrotli()
  const flush = encoding === 'gzip' ? constants.Z_SYNC_FLUSH : constants.BROTLI_OPERATION_FLUSH
  let chunks: Uint8Array[] = []
  const collect = () => {
    for (let chunk = stream.read() as Buffer | null; chunk !== null; chunk = stream.read()) chunks.push(chunk)
  }
  // Also in the middle of a piece: zlib stops when its output is not read.
  stream.on('readable', collect)
  stream.on('error', () => {})
  const take = () => {
    collect()
    const taken = Buffer.concat(chunks)
    chunks = []
    return taken
  }
  return {
    /** Compresses a piece and flushes it, so that it can be read without the next one. */
    async compress(piece: string): Promise<Uint8Array> {
      stream.write(piece)
      await new Promise<void>((resolve) => stream.flush(flush, () => resolve()))
      return take()
    },
    async finish(): Promise<Uint8Array> {
      const ended = once(stream, 'end')
      stream.end()
      await ended
      return take()
    },
    /** Frees its memory. May be called at any time. */
    close: () => stream.close(),
  }
}

function createBrotli() {
  return createBrotliCompress({
    params: {
      [constants.BROTLI_PARAM_MODE]: constants.BROTLI_MODE_TEXT,
      [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY,
      [constants.BROTLI_PARAM_LGWIN]: BROTLI_WINDOW_BITS,
    },
  })
}
