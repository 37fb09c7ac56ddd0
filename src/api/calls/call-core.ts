import type { DescMethod, DescService, Message } from '@bufbuild/protobuf'
import { MethodOptions_IdempotencyLevel } from '@bufbuild/protobuf/wkt'
import type { HandlerContext, ServiceImpl } from '@connectrpc/connect'
import type { Scope } from '../../auth/api-key.ts'
import type { Logger } from '../../domain/logger.ts'
import { checkRequests } from '../messages/check-requests.ts'
import type { Validate } from '../messages/validation.ts'
import type { ChooseForm } from '../rest/stream-format.ts'
import { type Answers, type Call, createCall, type Given, type IncomingCall, type Messages } from './call.ts'
import { type CallCaps, capCalls, capStreams, type StreamCaps } from './cap-calls.ts'
import { type ClassifyFailure, toWaybillError } from './error-mapping.ts'
import { keepDeadline, type TimeLimits } from './keep-deadline.ts'
import { logCalls } from './log-calls.ts'
import { type CallerOptions, requireCaller } from './require-caller.ts'
import { type TurnKind, type TurnLimits, takeTurns } from './take-turns.ts'

/** What a handler answers: a message, or what `create` takes to make it; or the {@link Answers} of a stream. */
export type Answer = object

/** The next interceptor, or the handler. */
export type Next = (call: Call) => Promise<Answer>

/** One concern of all calls. Composed once for each method, run once for each call, whatever the protocol. */
export type Interceptor = (method: ServedMethod, next: Next) => Next

/** The scope that each method of a service needs, by local name; `open` for a service that needs no key. */
export type ServiceAccess<S extends DescService> = 'open' | { readonly [K in keyof S['method']]: Scope | MethodAccess }

/** The scope of a method, and how it differs from other methods. */
export interface MethodAccess {
  readonly scope: Scope
  /** A caller who can send no key may send a ticket. */
  readonly takesTicket?: true
  /** Chooses how REST writes its stream, instead of the forms of all streams. */
  readonly chooseForm?: ChooseForm
  /** The kind of work whose turns are shared out among the keys; none by default. */
  readonly turn?: TurnKind
  /** The rows of a message of its stream. The reader's pace is then measured in rows, otherwise in messages. */
  readonly rowsOf?: (message: object) => number
  /** The id of an answer of its stream, for readers of server-sent events, who ask with it for what follows; undefined for none. */
  readonly eventIdOf?: (answer: object) => string | undefined
}

/** A service with its handlers. */
export interface ServedService {
  readonly service: DescService
  readonly methods: readonly ServedMethod[]
}

/** One method of it. */
export interface ServedMethod {
  readonly desc: DescMethod
  /** `/payments.v1.RoutesService/GetPaymentRoutes` */
  readonly path: string
  readonly scope: Scope | 'open'
  readonly takesTicket: boolean
  readonly chooseForm: ChooseForm | undefined
  readonly turn: TurnKind | undefined
  readonly rowsOf: ((message: object) => number) | undefined
  readonly eventIdOf: ((answer: object) => string | undefined) | undefined
  readonly handler: Handler
}

/** A handler without the types of its messages. */
type Handler = (request: Message | Messages, context: HandlerContext) => unknown

/**
 * Adds to a service its handlers and the scopes of its methods.
 *
 * @param handlers - as Connect's own router takes them
 */
export function serveService<S extends DescService>(
  service: S,
  handlers: ServiceImpl<S>,
  access: ServiceAccess<S>,
): ServedService {
  const methods = service.methods.map((desc): ServedMethod => {
    const localName = desc.localName as keyof S['method']
    const handler: unknown = handlers[localName]
    if (typeof handler !== 'function') throw new TypeError(`${service.typeName}.${desc.name} has no handler`)
    const given: Scope | MethodAccess | 'open' = access === 'open' ? 'open' : access[localName]
    const needed: Omit<MethodAccess, 'scope'> & { scope: Scope | 'open' } =
      typeof given === 'object' ? given : { scope: given }
    return {
      desc,
      path: `/${service.typeName}/${desc.name}`,
      scope: needed.scope,
      takesTicket: needed.takesTicket === true,
      chooseForm: needed.chooseForm,
      turn: needed.turn,
      rowsOf: needed.rowsOf,
      eventIdOf: needed.eventIdOf,
      handler: handler.bind(handlers) as Handler,
    }
  })
  return { service, methods }
}

export interface CallCoreOptions extends CallCaps, StreamCaps, CallerOptions, TimeLimits, TurnLimits {
  readonly services: readonly ServedService[]
  readonly validate: Validate
  readonly classify: ClassifyFailure
  readonly logger: Logger
  /** How long the one request of a stream may take to arrive, in milliseconds. */
  readonly requestTimeoutMs: number
}

/** A method behind its interceptors. */
export interface CallableMethod {
  readonly desc: DescMethod
  readonly path: string
  /** Whether it has no side effects, so that it may be called by GET. */
  readonly readsOnly: boolean
  readonly chooseForm: ChooseForm | undefined
  readonly eventIdOf: ((answer: object) => string | undefined) | undefined
  /**
   * Runs a call of a unary method from beginning to end.
   *
   * @throws WaybillError and nothing else; already logged
   */
  readonly callUnary: (incoming: IncomingCall) => Promise<UnaryAnswer>
  /** As `callUnary`, for the methods that take or answer a stream. Iterating the answers throws nothing but WaybillError, too. */
  readonly callStream: (incoming: IncomingCall) => Promise<StreamAnswer>
}

/** The answer of a unary method, with its headers and trailers. */
export interface UnaryAnswer extends Given {
  /** What the handler returned. */
  readonly plain: object
}

/** The answers of a method that takes or answers a stream. A method that answers once has one. */
export interface StreamAnswer {
  readonly answers: Answers
  /** Aborts when the call ends before its answer is complete. */
  readonly signal: AbortSignal
  /** The headers that the handler has set so far: complete once the first answer is there. */
  readonly header: () => Headers | undefined
  /** The trailers that the handler has set so far: complete once the answers have ended. */
  readonly trailer: () => Headers | undefined
}

/**
 * Makes the call core, which all protocols share. Each method stands behind the same interceptors, in this order: log, cap, deadline,
 * caller, cap of the caller's streams, checks of the request, turn. So nothing of a request is judged before its caller is known.
 *
 * @returns the methods by path
 */
export function createCallCore(options: CallCoreOptions): ReadonlyMap<string, CallableMethod> {
  const { logger, classify, validate } = options
  const interceptors: readonly Interceptor[] = [
    logCalls({ logger, toWaybillError: (thrown) => toWaybillError(thrown, classify) }),
    capCalls(options),
    keepDeadline(options),
    requireCaller(options),
    capStreams(options),
    checkRequests(validate, options.requestTimeoutMs),
    takeTurns(options),
  ]
  const methods = options.services.flatMap((served) => served.methods)
  return new Map(methods.map((method) => [method.path, compose(method, interceptors)]))
}

function compose(method: ServedMethod, interceptors: readonly Interceptor[]): CallableMethod {
  const { desc, path, chooseForm, eventIdOf } = method
  const run = interceptors.reduceRight((next, interceptor) => interceptor(method, next), invoke(method))
  return {
    desc,
    path,
    chooseForm,
    eventIdOf,
    readsOnly: desc.idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS,
    async callUnary(incoming) {
      const call = createCall(desc, incoming)
      try {
        const plain = await run(call)
        return { plain, ...givenOf(call) }
      } catch (error) {
        incoming.onFailure?.(givenOf(call))
        throw error
      }
    },
    async callStream(incoming) {
      const call = createCall(desc, incoming)
      const answers = (await run(call)) as Answers
      const header = () => call.givenResponseHeader()
      return { answers, signal: call.signal, header, trailer: () => call.givenResponseTrailer() }
    },
  }
}

function givenOf(call: Call): Given {
  return { header: call.givenResponseHeader(), trailer: call.givenResponseTrailer() }
}

/** The innermost step: the handler. */
function invoke({ desc, handler }: ServedMethod): Next {
  switch (desc.methodKind) {
    case 'unary':
      return async (call) => (await handler(requestOf(call), call)) as object
    case 'server_streaming':
      return async (call) => handler(requestOf(call), call) as Answers
    case 'bidi_streaming':
      return async (call) => handler(requestsOf(call), call) as Answers
    case 'client_streaming':
      return async (call) => answerOnce(() => handler(requestsOf(call), call))
  }
}

/** The one answer of a method as a stream: the protocols write both alike. */
async function* answerOnce(answer: () => unknown): Answers {
  yield (await answer()) as object
}

function requestOf({ request }: Call): Message {
  if (request === undefined) throw new TypeError('a handler was reached before its request was read')
  return request
}

function requestsOf({ requests }: Call): Messages {
  if (requests === undefined) throw new TypeError('a handler was reached before its requests were there')
  return requests
}
