import type { IncomingHttpHeaders } from 'node:http'
import type { DescMethod, Message } from '@bufbuild/protobuf'
import type { ReportLimit } from '../../auth/rate-limit.ts'
import type { Account } from '../../domain/account.ts'
import type { Logger } from '../../domain/logger.ts'
import type { WaybillError } from '../../errors/waybill-error.ts'
import type { CallContext } from './call-context.ts'

/** The ways in. */
export type Protocol = 'rest' | 'connect' | 'grpc' | 'grpc-web'

/** A call as its protocol hands it to the core. Nothing of it has been judged yet, and its body has not been read. */
export interface IncomingCall {
  readonly protocol: Protocol
  readonly requestId: string
  readonly headers: IncomingHttpHeaders
  /** From where it comes, in the form in which callers without a key are told apart. */
  readonly clientAddress: () => string
  /** Puts into the header of whatever answer follows how the caller stands against its limit. */
  readonly reportLimit: ReportLimit
  /**
   * How long the caller will wait, in milliseconds; undefined when it did not say.
   *
   * @throws WaybillError when what it said cannot be read
   */
  readonly readTimeoutMs: () => number | undefined
  /** Reads and decodes the request. Called once, after the caller is known; not for methods that take a stream. */
  readonly readRequest: () => Promise<Message>
  /** What a method that takes a stream is sent. */
  readonly requests?: Messages
  /** Tells once when the caller hangs up before the answer is out. */
  readonly onHangUp: (listener: () => void) => void
  /** Hears, when a call of a unary method fails, what the handler had given to go out beside its answer. */
  readonly onFailure?: (given: Given) => void
  /** What the caller sent in the place of a key, on a way that has room for it. Asked for only where no key was sent. */
  readonly readTicket?: () => string | null
  /** Hears that the handler wants the header of its stream sent. */
  readonly onOpen?: () => void
  /** Fires when the call is to end because the process does. Only for streams: other calls are let finish. */
  readonly stopping?: AbortSignal
}

/** A call on its way through the core. */
export interface Call extends CallContext {
  readonly incoming: IncomingCall
  readonly method: DescMethod
  account?: Account
  keyId?: string
  deadlineAtMs?: number
  /** Whether the request is being read: then a deadline that passes is the caller's own doing. */
  isReading?: boolean
  /** The decoded request; there once it has been read. */
  request?: Message
  /** As `request`, for a method that takes a stream. */
  requests?: Messages
  /** What was put into the header of the answer; undefined for nothing. */
  readonly givenResponseHeader: () => Headers | undefined
  readonly givenResponseTrailer: () => Headers | undefined
  /** Fires the signal. */
  readonly abort: (error: WaybillError) => void
  /** Ends the call before its time as if that were up; there once its time is kept. */
  end?: (error: WaybillError) => void
}

/** What a handler gave to go out beside its answer; undefined for nothing. */
export interface Given {
  readonly header: Headers | undefined
  readonly trailer: Headers | undefined
}

/** What a stream carries. */
export type Messages = AsyncIterable<Message>

/** Makes a call of what came in. */
export function createCall(method: DescMethod, incoming: IncomingCall, logger: Logger): Call {
  return new StartedCall(method, incoming, logger)
}

/**
 * Signal, headers and logger are made when first asked for: most calls need few of them.
 *
 * A class, because getters written in an object belong to its hidden class, which V8 then makes anew for each object and keeps, with all
 * that they refer to, until a major collection: every call outlived dozens of minor ones.
 */
class StartedCall implements Call {
  readonly method: DescMethod
  readonly incoming: IncomingCall
  readonly requestId: string
  readonly #logger: Logger
  #controller: AbortController | undefined
  #requestHeader: Headers | undefined
  #responseHeader: Headers | undefined
  #responseTrailer: Headers | undefined
  #callLogger: Logger | undefined

  constructor(method: DescMethod, incoming: IncomingCall, logger: Logger) {
    this.method = method
    this.incoming = incoming
    this.requestId = incoming.requestId
    this.#logger = logger
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

  get logger(): Logger {
    this.#callLogger ??= withFields(this.#logger, { requestId: this.requestId })
    return this.#callLogger
  }

  readonly openStream = (): void => this.incoming.onOpen?.()

  readonly givenResponseHeader = (): Headers | undefined => this.#responseHeader

  readonly givenResponseTrailer = (): Headers | undefined => this.#responseTrailer

  readonly abort = (error: WaybillError): void => {
    this.#controller ??= new AbortController()
    this.#controller.abort(error)
  }
}

/** The value of a header that was sent once; null when it was not sent. */
export function headerOf(headers: IncomingHttpHeaders, name: string): string | null {
  const value = headers[name]
  if (value === undefined) return null
  return typeof value === 'string' ? value : value.join(', ')
}

/** Without the pseudo-headers of HTTP/2. */
export function toHeaders(headers: IncomingHttpHeaders): Headers {
  const result = new Headers()
  for (const [name, value] of Object.entries(headers)) {
    if (name.startsWith(':') || value === undefined) continue
    for (const each of typeof value === 'string' ? [value] : value) result.append(name, each)
  }
  return result
}

function withFields(logger: Logger, common: object): Logger {
  return {
    debug: (fields, message) => logger.debug({ ...common, ...fields }, message),
    info: (fields, message) => logger.info({ ...common, ...fields }, message),
    warn: (fields, message) => logger.warn({ ...common, ...fields }, message),
    error: (fields, message) => logger.error({ ...common, ...fields }, message),
  }
}

/**
 * Calls back when an answer is complete: at once for a message, for a stream when it has been read to its end, has failed or
 * has been left.
 *
 * @returns the answer to pass on
 */
export function whenComplete<T extends object | Messages>(answer: T, complete: (error?: unknown) => void): T {
  if (Symbol.asyncIterator in answer) return completing(answer, complete) as unknown as T
  complete()
  return answer
}

async function* completing(messages: Messages, complete: (error?: unknown) => void): Messages {
  let failure: unknown
  try {
    yield* messages
  } catch (error) {
    failure = error
    throw error
  } finally {
    complete(failure)
  }
}
