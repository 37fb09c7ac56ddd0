import { type DescMethod, fromJson, type JsonObject, type JsonValue } from '@bufbuild/protobuf'
import { PaymentSearchService } from '../../../gen/payments/v1/payment_search_service_pb.js'
import { checkStreamMessage } from '../described/check-answer.ts'
import { ofHttpError, restRequestOf } from './clients.ts'
import { createStreamClient, streamProtocols } from './stream-clients.ts'

/** All ways to watch. */
export const watchWays = [...streamProtocols, 'JSON lines', 'server-sent events'] as const
export type WatchWay = (typeof watchWays)[number]

/** An event of a watch, by its JSON names. */
export interface WatchedJson extends JsonObject {
  readonly type: 'ADDED' | 'UPDATED' | 'REMOVED' | 'HEARTBEAT'
  readonly watchCursor: string
}

export interface WatchCall {
  readonly url: string
  /** Default WatchPayments. */
  readonly method?: DescMethod
  readonly request?: JsonObject
  readonly headers: Readonly<Record<string, string>>
  /** Called with each message; decides whether the call goes on. */
  readonly onMessage: (message: WatchedJson) => 'go on' | 'hang up'
}

/** The result of a watch. */
export interface WatchOutcome {
  readonly messages: readonly WatchedJson[]
  /** The error that ended it; absent if the reader ended it. */
  readonly error?: { readonly code: string; readonly reason: string; readonly httpStatus?: number }
}

const { watchPayments } = PaymentSearchService.method

/** Watches until the reader has enough or the watch ends. */
export async function watchBy(way: WatchWay, call: WatchCall): Promise<WatchOutcome> {
  if (way === 'JSON lines') return watchOverHttp(call, 'application/x-ndjson', readJsonLine)
  if (way === 'server-sent events') return watchOverHttp(call, 'text/event-stream', readEvent)
  const client = createStreamClient(call.url)
  const method: DescMethod = call.method ?? watchPayments
  let isEnough = false
  try {
    const { messages, error } = await client.call(way, method, [fromJson(method.input, call.request ?? {})], {
      headers: call.headers,
      onMessage(message) {
        if (isEnough) return 'hang up'
        const next = call.onMessage(message as WatchedJson)
        isEnough = next === 'hang up'
        return next
      },
    })
    const watched = messages as readonly WatchedJson[]
    if (isEnough || error === undefined || !('code' in error)) return { messages: watched }
    return { messages: watched, error: { code: error.code, reason: error.reason } }
  } finally {
    client.close()
  }
}

type Piece =
  | { readonly message: WatchedJson; readonly id?: string | undefined }
  | { readonly error: JsonObject }
  | undefined

async function watchOverHttp(call: WatchCall, accept: string, read: (piece: string) => Piece): Promise<WatchOutcome> {
  const { target } = restRequestOf(call.method ?? watchPayments, call.request ?? {})
  const aborter = new AbortController()
  const response = await fetch(call.url + target, { headers: { ...call.headers, accept }, signal: aborter.signal })
  if (!response.ok) {
    return { messages: [], error: errorOf((await response.json()) as JsonObject, response.status) }
  }
  const messages: WatchedJson[] = []
  const separator = accept === 'text/event-stream' ? '\n\n' : '\n'
  let text = ''
  for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += chunk
    for (let end = text.indexOf(separator); end >= 0; end = text.indexOf(separator)) {
      const piece = read(text.slice(0, end))
      text = text.slice(end + separator.length)
      if (piece === undefined) continue
      if ('error' in piece) return { messages, error: errorOf(piece.error) }
      const isOfPayments = call.method === undefined && accept === 'text/event-stream'
      if (isOfPayments && piece.id !== piece.message.watchCursor) throw new Error('id and cursor differ')
      checkStreamMessage(target, piece.message)
      messages.push(piece.message)
      if (call.onMessage(piece.message) === 'hang up') {
        aborter.abort()
        return { messages }
      }
    }
  }
  throw new Error('the body ended without an error')
}

function errorOf(body: JsonObject, httpStatus?: number) {
  const { code, info } = ofHttpError(body)
  const { reason } = info as { readonly reason: string }
  return { code, reason, ...(httpStatus !== undefined && { httpStatus }) }
}

function readJsonLine(line: string): Piece {
  if (line === '') return undefined
  const { result, error } = JSON.parse(line) as { result?: JsonValue; error?: JsonObject }
  return error === undefined ? { message: result as WatchedJson } : { error }
}

function readEvent(text: string): Piece {
  const fields = new Map(
    text.split('\n').map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)]),
  )
  const data = fields.get('data')
  if (data === undefined) return undefined
  if (fields.get('event') === 'error') return { error: JSON.parse(data) as JsonObject }
  return { message: JSON.parse(data) as WatchedJson, id: fields.get('id') }
}
