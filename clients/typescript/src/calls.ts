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
import type { Transport } from '@connectrpc/connect'
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

/** What all calls of a client share. */
export interface Caller {
  readonly transport: Transport
  readonly headers: Readonly<Record<string, string>>
  readonly timeoutMs: number
  readonly retries: number
}

export function makeCalls<S extends DescService>(caller: Caller, service: S): Calls<S> {
  const entries = service.methods.map((method) => {
    if (method.methodKind === 'unary') return [method.localName, bindUnary(caller, method as DescMethodUnary)]
    if (method.methodKind === 'server_streaming')
      return [method.localName, bindStream(caller, method as DescMethodServerStreaming)]
    throw new Error(`${method.name}: fetch cannot stream what is sent`)
  })
  return Object.fromEntries(entries) as Calls<S>
}

function bindUnary<I extends DescMessage, O extends DescMessage>(caller: Caller, method: DescMethodUnary<I, O>) {
  return (request: MessageInitShape<I>, options: CallOptions = {}) => callUnary(caller, method, request, options)
}

function bindStream<I extends DescMessage, O extends DescMessage>(
  caller: Caller,
  method: DescMethodServerStreaming<I, O>,
) {
  return (request: MessageInitShape<I>, options: CallOptions = {}) => callStream(caller, method, request, options)
}

async function callUnary<I extends DescMessage, O extends DescMessage>(
  caller: Caller,
  method: DescMethodUnary<I, O>,
  request: MessageInitShape<I>,
  { signal, timeoutMs = caller.timeoutMs, retries = caller.retries, headers, onHeader }: CallOptions,
): Promise<MessageShape<O>> {
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
async function* callStream<I extends DescMessage, O extends DescMessage>(
  caller: Caller,
  method: DescMethodServerStreaming<I, O>,
  request: MessageInitShape<I>,
  { signal, timeoutMs, headers }: CallOptions,
): AsyncGenerator<MessageShape<O>, void, undefined> {
  // The transport's iterator does not end the call when its reader leaves: this signal does.
  const left = new AbortController()
  const either = signal === undefined ? left.signal : AbortSignal.any([signal, left.signal])
  try {
    const input = oneOf(request)
    const sent = headersOf(caller, method, headers)
    const { message } = await caller.transport.stream(method, either, timeoutMs, sent, input)
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
