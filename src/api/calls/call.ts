import type { IncomingHttpHeaders } from 'node:http'
import type { DescMethod, Message } from '@bufbuild/protobuf'
import { type ContextValues, createContextKey, createContextValues, type HandlerContext } from '@connectrpc/connect'
import type { Caller, ReportLimit } from '../../auth/caller.ts'
import { type Account, USUAL_SHARE } from '../../domain/account.ts'
import type { WaybillError } from '../../errors/waybill-error.ts'
import type { Holder } from './shares.ts'

export type Protocol = 'rest' | 'connect' | 'grpc' | 'grpc-web'

/** By which everybody learns that a listener ends. They fire in this order. */
export interface Ending {
  /** The process is not ready any more; calls go on. */
  readonly draining: AbortSignal
  /** The port is closed, streams end, other calls may finish. */
  readonly stopping: AbortSignal
  /** The grace period is over: every call ends. */
  readonly cutting: AbortSignal
}

/** What the call core needs to know about the HTTP request of a call. */
export interface CallOrigin {
  readonly requestId: string
  readonly headers: IncomingHttpHeaders
  /** The caller's address, in the form by which callers without a key are counted. */
  readonly clientAddress: () => string
  /** Adds the caller's rate limit to the headers of whatever answer follows. */
  readonly reportLimit: ReportLimit
  /** Adds headers to whatever answer follows. */
  readonly addHeaders: (fields: Readonly<Record<string, string>>) => void
  /** How many bytes of the request's body have been read. */
  readonly receivedBytes: () => number
  /** Says who makes the call, once it is known. */
  readonly holdConnectionFor: (holder: Holder) => void
  /** Calls back once if the caller hangs up before the answer is complete. */
  readonly onHangUp: (listener: () => void) => void
}

/** A call as its protocol passes it to the call core. Nothing of it has been checked, and its body has not been read. */
export interface IncomingCall extends CallOrigin {
  readonly protocol: Protocol
  /**
   * The caller's timeout, in milliseconds; undefined for none, as in REST.
   *
   * @throws WaybillError when the timeout is malformed
   */
  readonly readTimeoutMs?: () => number | undefined
  /** Reads and decodes the request. Called once, after the caller is known; not for methods that take a stream. */
  readonly readRequest: () => Promise<Message>
  /** The requests of a method that takes a stream. */
  readonly requests?: Messages
  /** Reads the ticket that stands in for a key. Called only where no key was sent. */
  readonly readTicket?: () => string | null
  /** Fires when the process stops. Only streams end then; other calls may finish. */
  readonly stopping?: AbortSignal
}

/** The headers and trailers that a handler has set; undefined for none. */
export interface Given {
  readonly header: Headers | undefined
  readonly trailer: Headers | undefined
}

/** The requests of a stream. */
export type Messages = AsyncIterable<Message>

/** The answers of a stream, each a message or what `create` takes to make it. */
export type Answers = AsyncIterable<object>

/**
 * The key of the caller in a handler's context values; undefined for methods that need no key. Handlers take Connect's own
 * {@link HandlerContext} and find their caller in its values, so that they run on any of Connect's servers.
 */
export const callerKey = createContextKey<Caller | undefined>(undefined, { description: 'caller' })

/**
 * The caller of a method that needs a key.
 *
 * @throws TypeError when the method needs none
 */
export function callerOf({ values }: Pick<HandlerContext, 'values'>): Caller {
  const caller = values.get(callerKey)
  if (caller === undefined) throw new TypeError('the handler of a method that needs no key asked for the caller')
  return caller
}

/** What handlers here use of Connect's context; that of a call has no more. */
export type CallContext = Omit<HandlerContext, 'service' | 'protocolName' | 'requestMethod' | 'url'>

/** The account of {@link callerOf}. */
export function accountOf(context: Pick<HandlerContext, 'values'>): Account {
  return callerOf(context).account
}

/**
 * A call on its way through the call core. It is also the context that Connect's handlers get. Signal, headers and values are made when they are
 * first used: most calls need few of them.
 *
 * A class, because of its getters: V8 gives each object literal with getters a hidden class of its own, and keeps that, with all that
 * it refers to, until a major collection. Every call then outlived dozens of minor ones.
 */
export class Call implements CallContext {
  readonly method: DescMethod
  readonly incoming: IncomingCall
  readonly requestId: string
  /** Set once it is known; absent for methods that need no key. */
  caller?: Caller
  /** Who holds the places of the call; made when it is first asked for, by `holderOf`. */
  holder?: Holder
  deadlineAtMs?: number
  /** Of the trace that records it. */
  declare traceId?: string
  /** True while the request is read: a deadline that passes then is the caller's fault. */
  declare isReading?: boolean
  /** The decoded request, once it has been read. */
  declare request?: Message
  /** The decoded requests of a method that takes a stream. */
  declare requests?: Messages
  /** Ends the call with an error before its deadline. Set once the deadline is kept. */
  declare end?: (error: WaybillError) => void
  #controller: AbortController | undefined
  #requestHeader: Headers | undefined
  #responseHeader: Headers | undefined
  #responseTrailer: Headers | undefined
  #values: ContextValues | undefined

  constructor(method: DescMethod, incoming: IncomingCall) {
    this.method = method
    this.incoming = incoming
    this.requestId = incoming.requestId
  }

  get signal(): AbortSignal {
    this.#controller ??= new AbortController()
    return this.#controller.signal
  }

  get requestHeader(): Headers {
    this.#requestHeader ??= toHeaders(this.incoming.headers)
    return this.#requestHeader
  }

  get responseHeader(): Headers {
    this.#responseHeader ??= new Headers()
    return this.#responseHeader
  }

  get responseTrailer(): Headers {
    this.#responseTrailer ??= new Headers()
    return this.#responseTrailer
  }

  get values(): ContextValues {
    this.#values ??= createContextValues().set(callerKey, this.caller)
    return this.#values
  }

  /** A getter, since handlers may take the function out of the context. */
  get timeoutMs(): () => number | undefined {
    return () => (this.deadlineAtMs === undefined ? undefined : this.deadlineAtMs - Date.now())
  }

  /** The headers that the handler has set; undefined for none. */
  givenResponseHeader(): Headers | undefined {
    return this.#responseHeader
  }

  givenResponseTrailer(): Headers | undefined {
    return this.#responseTrailer
  }

  /** Aborts the signal. */
  abort(error: WaybillError): void {
    this.#controller ??= new AbortController()
    this.#controller.abort(error)
  }
}

/** Who holds the places of a call. Called once its caller is known. */
export function holderOf(call: Call): Holder {
  call.holder ??= findHolder(call)
  return call.holder
}

function findHolder({ caller, incoming }: Call): Holder {
  if (caller === undefined) return keylessAt(incoming.clientAddress())
  const { page, share = USUAL_SHARE } = caller
  if (page !== undefined) return { standing: 'publishable', name: page.address, share: 0 }
  // A platform key acts for many accounts, each of which counts by itself.
  return { standing: 'secret', name: `${caller.keyId} ${caller.account.id}`, share }
}

export function keylessAt(address: string): Holder {
  return { standing: 'keyless', name: address, share: 0 }
}

/** The value of a header; null when it was not sent. Values of a header that was sent more than once are joined by commas. */
export function headerOf(headers: IncomingHttpHeaders, name: string): string | null {
  const value = headers[name]
  if (value === undefined) return null
  return typeof value === 'string' ? value : value.join(', ')
}

/** Leaves out the pseudo-headers of HTTP/2. */
function toHeaders(headers: IncomingHttpHeaders): Headers {
  const result = new Headers()
  for (const [name, value] of Object.entries(headers)) {
    if (name.startsWith(':') || value === undefined) continue
    for (const each of typeof value === 'string' ? [value] : value) result.append(name, each)
  }
  return result
}

/**
 * Calls back when an answer is complete: at once for a message; for a stream when it has been read to its end, has failed, or its
 * reader has left.
 *
 * @returns the answer to pass on
 */
export function whenComplete<T extends object>(answer: T, complete: (error?: unknown) => void): T {
  if (isStream(answer)) return completing(answer, complete) as unknown as T
  complete()
  return answer
}

/** Tells the answers of a stream from a single answer. */
export function isStream(answer: object): answer is Answers {
  return Symbol.asyncIterator in answer
}

async function* completing(answers: Answers, complete: (error?: unknown) => void): Answers {
  let failure: unknown
  try {
    yield* answers
  } catch (error) {
    failure = error
    throw error
  } finally {
    complete(failure)
  }
}
