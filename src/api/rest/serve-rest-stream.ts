import type { Message } from '@bufbuild/protobuf'
import { WaybillError } from '../../errors/waybill-error.ts'
import type { PlainJsonSerializer } from '../../transcoding/messages/plain-json-serializer.ts'
import type { Route } from '../../transcoding/transcoder.ts'
import type { AnsweredStream, CallableMethod } from '../calls/call-core.ts'
import { breakOffStuck } from '../http/break-off-stuck.ts'
import type { AnswerWriter, Exchange, HeaderFields } from '../http/exchange.ts'
import { chooseEncoding, type Inbound, sendHttpError } from '../http/http-answer.ts'
import { createStreamCompressor, type StreamCompressor } from '../http/stream-compression.ts'
import { chooseStreamFormat, type StreamFormat } from './stream-format.ts'

export interface RestStreamOptions {
  /** By which id a reader can ask for what comes after a message, in `Last-Event-ID`; undefined for a message without. */
  readonly eventIdOf: (message: Message) => string | undefined
  /** After how much silence the other side is told that the stream is still there. */
  readonly heartbeatMs: number
  /** How long a reader that has stopped has to make room for the end of a stream. */
  readonly drainMs: number
  /** Fires when the listener is to stop. */
  readonly stopping: AbortSignal
}

/** A call of a method by one of its routes. */
export interface RestCall {
  readonly method: CallableMethod
  readonly route: Route
  readonly readRequest: () => Promise<Message>
}

/** Answers a call with a stream of JSON lines or server-sent events. */
export type RestStreamServer = (inbound: Inbound, call: RestCall) => Promise<void>

/**
 * Makes it. The header goes out with the first message, so that what fails before is an ordinary error with its status; or
 * with the first heartbeat, or when the handler says that the stream is open.
 */
export function createRestStreamServer(options: RestStreamOptions): RestStreamServer {
  const { heartbeatMs, drainMs, stopping } = options

  return async (inbound, { method, route, readRequest }) => {
    const { exchange, requestId, clientAddress, reportLimit } = inbound
    const opened = Promise.withResolvers<undefined>()
    const hangUp = hangUpOf(exchange)
    const { accept } = exchange.headers
    const { chooseForm } = method
    let format: StreamFormat | undefined
    try {
      const answered = await method.callStream({
        protocol: 'rest',
        requestId,
        headers: exchange.headers,
        clientAddress,
        reportLimit,
        readTicket: () => new URLSearchParams(exchange.rawQuery).get('ticket'),
        readTimeoutMs: () => undefined,
        // After the caller is known, like all else that is judged.
        readRequest: async () => {
          if (chooseForm === undefined) format = chooseStreamFormat(accept)
          const request = await readRequest()
          format ??= chooseForm?.(accept, request)
          return request
        },
        onHangUp: hangUp.listen,
        onOpen: () => opened.resolve(undefined),
        stopping,
      })
      const source = readAhead(answered.messages)
      try {
        await Promise.race([source.next(heartbeatMs), opened.promise])
        if (format === undefined) throw new TypeError('a stream was answered before its request was read')
        const head = { inbound, answered, format }
        if (exchange.method === 'HEAD') sendHead(head)
        else await sendStream(head, source, route.encodeResponse)
      } finally {
        hangUp.fire()
        source.leave()
      }
    } catch (error) {
      if (!(error instanceof WaybillError)) throw error
      sendHttpError(inbound, error)
    }
  }

  async function sendStream(head: StreamHead, source: Source, encode: PlainJsonSerializer): Promise<void> {
    const { inbound, answered, format } = head
    const { exchange } = inbound
    const encoding = chooseEncoding(exchange.headers['accept-encoding']?.toString())
    const coding: HeaderFields = encoding === undefined ? {} : { 'content-encoding': encoding }
    const writer = exchange.begin({ status: 200, headers: { ...headersOf(head), ...coding }, hasTrailers: false })
    const compressor = encoding && createStreamCompressor(encoding)
    const release = breakOffStuck(exchange, answered.signal, drainMs)
    try {
      await writePiece(writer, compressor, format.begin ?? '')
      const end = await sendMessages(source, format, encode, (text) => writePiece(writer, compressor, text))
      await writePiece(writer, compressor, end)
      if (compressor !== undefined) await writer.write(await compressor.finish())
      writer.end()
    } catch (error) {
      // The other side is gone; the core has heard of it as well and ends the call.
      if (!(error instanceof WaybillError)) throw error
    } finally {
      release()
      compressor?.close()
    }
  }

  /** Sends what comes, each message only when the other side has room for it; resolves with what ends the stream. */
  async function sendMessages(
    source: Source,
    format: StreamFormat,
    encode: PlainJsonSerializer,
    write: (text: string) => Promise<void>,
  ): Promise<string> {
    for (;;) {
      const result = await source.next(heartbeatMs).catch(asFailure)
      if (result === undefined) await write(format.heartbeat)
      else if (result instanceof WaybillError) return format.error(result)
      else if (result.done === true) return format.end
      else {
        source.take()
        await write(format.message(result.value, encode, options.eventIdOf(result.value)))
      }
    }
  }
}

interface StreamHead {
  readonly inbound: Inbound
  readonly answered: AnsweredStream
  readonly format: StreamFormat
}

function headersOf({ inbound: { commonHeaders }, answered, format }: StreamHead): HeaderFields {
  const given = answered.header()
  return {
    ...commonHeaders,
    vary: `accept, ${commonHeaders.vary ?? ''}`,
    'cache-control': 'no-store',
    // Proxies of nginx's kind would keep messages back until their buffer is full.
    'x-accel-buffering': 'no',
    ...(given && Object.fromEntries(given)),
    ...format.headers,
    'content-type': format.contentType,
  }
}

function sendHead(head: StreamHead): void {
  head.inbound.exchange.begin({ status: 200, headers: headersOf(head), hasTrailers: false }).end()
}

async function writePiece(writer: AnswerWriter, compressor: StreamCompressor | undefined, text: string): Promise<void> {
  if (text === '') return
  await writer.write(compressor === undefined ? Buffer.from(text) : await compressor.compress(text))
}

function asFailure(error: unknown): WaybillError {
  if (error instanceof WaybillError) return error
  throw error
}

/** The messages of a stream, one of which may be waited for again and again. */
interface Source {
  /** The next message, the same until it is taken; undefined when it does not come in time. */
  readonly next: (timeoutMs: number) => Promise<IteratorResult<Message> | undefined>
  readonly take: () => void
  readonly leave: () => void
}

function readAhead(messages: AsyncIterable<Message>): Source {
  const iterator = messages[Symbol.asyncIterator]()
  let pending: Promise<IteratorResult<Message>> | undefined
  const read = () => {
    const result = iterator.next()
    // It may fail while nobody waits.
    result.catch(() => {})
    return result
  }
  return {
    async next(timeoutMs) {
      pending ??= read()
      const late = Promise.withResolvers<undefined>()
      const timer = setTimeout(() => late.resolve(undefined), timeoutMs)
      try {
        return await Promise.race([pending, late.promise])
      } finally {
        clearTimeout(timer)
      }
    },
    take: () => {
      pending = undefined
    },
    leave: () => {
      // Not awaited: what does not listen to the signal would hold up the end.
      iterator.return?.()?.catch(() => {})
    },
  }
}

/** When the call is to end: with the other side, or before, when no more of it is wanted. */
function hangUpOf(exchange: Exchange) {
  const ended = new AbortController()
  const fire = () => ended.abort(ended)
  exchange.onHangUp(fire)
  return {
    fire,
    listen: (listener: () => void) => {
      if (ended.signal.aborted) listener()
      else ended.signal.addEventListener('abort', listener, { once: true })
    },
  }
}
