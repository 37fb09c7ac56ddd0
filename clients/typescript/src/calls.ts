/** Typed calls of every method of a service, made from its descriptor. */
import type {
  DescMessage,
  DescMethodServerStreaming,
  DescMethodUnary,
  DescService,
  MessageInitShape,
  MessageShape,
} from '@bufbuild/protobuf'
import { MethodOptions_IdempotencyLevel as Level } from '@bufbuild/protobuf/wkt'
import { createConnectTransport } from '@connectrpc/connect-web'
import { toCallError } from './call-error.ts'
import { sleep, waitBeforeRetry } from './retry.ts'

/** What one call may set for itself. */
export interface CallOptions {
  readonly signal?: AbortSignal | undefined
  /** Time for the call with its retries. Default: `timeoutMs` of the client; streams have none. */
  readonly timeoutMs?: number | undefined
  /** How often to try again. Default: `retries` of the client. */
  readonly retries?: number | undefined
  /** More headers, such as an `idempotency-key` of your own. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** Called with the headers of the answer, such as `x-request-id`; not for streams. */
  readonly onHeader?: ((headers: Headers) => void) | undefined
}

/** The methods of a service as functions: one answer as a promise, several as an async iterable. */
export type Calls<S extends DescService> = {
  readonly [M in keyof S['method']]: S['method'][M] extends DescMethodUnary<infer I, infer O>
    ? (request: MessageInitShape<I>, options?: CallOptions) => Promise<MessageShape<O>>
    : S['method'][M] extends DescMethodServerStreaming<infer I, infer O>
      ? (request: MessageInitShape<I>, options?: CallOptions) => AsyncIterable<MessageShape<O>>
      : never
}

/** Where the service is and who calls it. */
export interface WaybillOptions {
  /** Address of the service, `https://pay.example.com`. */
  readonly baseUrl: string
  /** An account's key (`wb_…`) on a server, a publishable one (`wbp_…`) in a page. */
  readonly apiKey: string
  /** The account, where the key is a platform's. */
  readonly account?: string | undefined
  /** Default: `fetch` of the runtime. */
  readonly fetch?: typeof globalThis.fetch | undefined
  /** Time for a call with its retries. Default: 30,000. Streams have no limit. */
  readonly timeoutMs?: number | undefined
  /** How often a call is tried again where that is safe. Default: 2. */
  readonly retries?: number | undefined
}

/** What all calls of a client share. */
export type Caller = ReturnType<typeof createCaller>

export function createCaller({ apiKey, account, fetch, ...options }: WaybillOptions) {
  const { timeoutMs = 30_000, retries = 2 } = options
  const baseUrl = options.baseUrl.replace(/\/+$/, '')
  const headers = { 'x-api-key': apiKey, ...(account !== undefined && { 'x-account': account }) }
  const transport = createConnectTransport({ baseUrl, useBinaryFormat: true, ...(fetch !== undefined && { fetch }) })
  return { transport, headers, timeoutMs, retries, baseUrl, fetch }
}

export function makeCalls<S extends DescService>(caller: Caller, service: S): Calls<S> {
  const entries = service.methods.map((method) => {
    if (method.methodKind === 'unary')
      return [method.localName, callUnary.bind(undefined, caller, method as DescMethodUnary)]
    if (method.methodKind === 'server_streaming')
      return [method.localName, callStream.bind(undefined, caller, method as DescMethodServerStreaming)]
    throw new Error(`${method.name}: fetch cannot stream what is sent`)
  })
  return Object.fromEntries(entries) as Calls<S>
}

async function callUnary(
  caller: Caller,
  method: DescMethodUnary,
  request: MessageInitShape<DescMessage>,
  { signal, timeoutMs = caller.timeoutMs, retries = caller.retries, headers, onHeader }: CallOptions = {},
): Promise<MessageShape<DescMessage>> {
  const sent = headersOf(caller, method, headers)
  const isSafe = method.idempotency !== Level.IDEMPOTENCY_UNKNOWN || sent.has('idempotency-key')
  const deadline = performance.now() + timeoutMs
  for (let attempt = 0; ; attempt++) {
    try {
      const leftMs = Math.max(1, Math.ceil(deadline - performance.now()))
      const { header, message } = await caller.transport.unary(method, signal, leftMs, sent, request)
      onHeader?.(header)
      return message
    } catch (thrown) {
      signal?.throwIfAborted()
      const error = toCallError(thrown)
      const leftMs = deadline - performance.now()
      const waitMs = waitBeforeRetry({ error, attempt, retries, isSafe, leftMs, random: Math.random() })
      if (waitMs === undefined) throw error
      await sleep(waitMs, signal)
    }
  }
}

/** A stream is opened once: who reads it knows from where to go on. */
async function* callStream(
  caller: Caller,
  method: DescMethodServerStreaming,
  request: MessageInitShape<DescMessage>,
  { signal, timeoutMs, headers }: CallOptions = {},
): AsyncGenerator<MessageShape<DescMessage>, void, undefined> {
  // The transport's iterator does not end the call when its reader leaves: this signal does.
  const left = new AbortController()
  const either = signal === undefined ? left.signal : AbortSignal.any([signal, left.signal])
  try {
    const sent = headersOf(caller, method, headers)
    const { message } = await caller.transport.stream(method, either, timeoutMs, sent, oneOf(request))
    yield* message
  } catch (thrown) {
    signal?.throwIfAborted()
    throw toCallError(thrown)
  } finally {
    left.abort()
  }
}

async function* oneOf<T>(value: T): AsyncGenerator<T, void, undefined> {
  yield value
}

/** CreatePaymentRequest gets an idempotency-key, the same for all its attempts, so that a retry never stores a second request. */
function headersOf(caller: Caller, method: { readonly localName: string }, headers: CallOptions['headers']): Headers {
  const sent = new Headers({ ...caller.headers, ...headers })
  if (method.localName === 'createPaymentRequest' && !sent.has('idempotency-key')) {
    sent.set('idempotency-key', randomKey())
  }
  return sent
}

/** 128 random bits. `crypto.randomUUID` is missing on pages without TLS. */
function randomKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('')
}
