import {
  create,
  type DescMessage,
  type DescMethod,
  type DescService,
  type Message,
  type MessageInitShape,
} from '@bufbuild/protobuf'
import { MethodOptions_IdempotencyLevel } from '@bufbuild/protobuf/wkt'
import type { Scope } from '../../auth/api-key.ts'
import type { Logger } from '../../domain/logger.ts'
import { checkRequests } from '../messages/check-requests.ts'
import type { Validate } from '../messages/validation.ts'
import type { ChooseForm } from '../rest/stream-format.ts'
import { type Call, createCall, type Given, type IncomingCall, type Messages } from './call.ts'
import type { CallContext, ServiceHandlers } from './call-context.ts'
import { type CallCaps, capCalls, capStreams, type StreamCaps } from './cap-calls.ts'
import { type ClassifyFailure, fromHandler } from './error-mapping.ts'
import { keepDeadline, type TimeLimits } from './keep-deadline.ts'
import { logCalls } from './log-calls.ts'
import { type CallerOptions, requireCaller } from './require-caller.ts'
import { type TurnKind, type TurnLimits, takeTurns } from './take-turns.ts'

/** What a method answers with: one message, or what is to become one, or the messages of a stream. */
export type Answer = object | Messages

/** The rest of the way to the handler. */
export type Next = (call: Call) => Promise<Answer>

/** One concern of every call, written once. Composed once a method, run once a call, under every protocol. */
export type Interceptor = (method: ServedMethod, next: Next) => Next

/** Which scope each method of a service needs, by local name; `open` for a service that needs no key. */
export type ServiceAccess<S extends DescService> = 'open' | { readonly [K in keyof S['method']]: Scope | MethodAccess }

/** A scope, and what else is particular to a method. */
export interface MethodAccess {
  readonly scope: Scope
  /** A ticket may stand for the scope, where a caller can send no key. */
  readonly takesTicket?: true
  /** How its stream is written over plain HTTP, where that is not as all others are. */
  readonly chooseForm?: ChooseForm
  /** Its work is of this kind, of which each key has its part. */
  readonly turn?: TurnKind
  /** How many rows are in a message of its stream, whose reader must then take so many rows a second; else messages are counted. */
  readonly rowsOf?: (message: object) => number
}

/** A service and all that is needed to serve it. */
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
  readonly handler: Handler
}

/** As the handlers of a service look without their types. */
type Handler = (request: Message | Messages, context: CallContext) => unknown

/** Puts a service beside its handlers, checked by type. */
export function serveService<S extends DescService>(
  service: S,
  handlers: ServiceHandlers<S>,
  access: ServiceAccess<S>,
): ServedService {
  const methods = service.methods.map((desc): ServedMethod => {
    const localName = desc.localName as keyof S['method']
    const handler = handlers[localName]
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
  /** How long the request of a stream may take to come, in milliseconds. */
  readonly requestTimeoutMs: number
}

/** A method behind its interceptors. */
export interface CallableMethod {
  readonly desc: DescMethod
  readonly path: string
  /** Whether it changes nothing, so that it may be called by GET. */
  readonly readsOnly: boolean
  /** How its stream is written over plain HTTP, where that is not as all others are. */
  readonly chooseForm: ChooseForm | undefined
  /**
   * Runs a call of a unary method from beginning to end.
   *
   * @throws WaybillError alone; already logged
   */
  readonly callUnary: (incoming: IncomingCall) => Promise<Answered>
  /** As callUnary, for a method that answers with a stream. Iterating the messages throws WaybillError alone, too. */
  readonly callStream: (incoming: IncomingCall) => Promise<AnsweredStream>
}

/** An answer and what is to stand in the header beside it. */
export interface Answered extends Given {
  /** As the handler gave it. */
  readonly plain: object
}

export interface AnsweredStream {
  readonly messages: Messages
  /** Fires when the call ends before its answer is out. */
  readonly signal: AbortSignal
  /** What the handler has put into the header so far: all of it once the first message is there. */
  readonly header: () => Headers | undefined
  /** The same of the trailer: all of it once the messages have ended. */
  readonly trailer: () => Headers | undefined
}

/**
 * Makes the one core under every protocol: each method behind the same interceptors, in the order log, cap, deadline, caller,
 * cap of the caller's streams, request, turn, handler, so that nothing of a request is judged before its caller is known.
 *
 * @returns the methods by path
 */
export function createCallCore(options: CallCoreOptions): ReadonlyMap<string, CallableMethod> {
  const { logger, classify, validate } = options
  const interceptors: readonly Interceptor[] = [
    logCalls({ logger, toWaybillError: (thrown) => fromHandler(thrown, classify) }),
    capCalls(options),
    keepDeadline(options),
    requireCaller(options),
    capStreams(options),
    checkRequests(validate, options.requestTimeoutMs),
    takeTurns(options),
  ]
  const methods = options.services.flatMap((served) => served.methods)
  return new Map(methods.map((method) => [method.path, compose(method, interceptors, logger)]))
}

function compose(method: ServedMethod, interceptors: readonly Interceptor[], logger: Logger): CallableMethod {
  const { desc, path, chooseForm } = method
  const run = interceptors.reduceRight((next, interceptor) => interceptor(method, next), invoke(method))
  return {
    desc,
    path,
    chooseForm,
    readsOnly: desc.idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS,
    async callUnary(incoming) {
      const call = createCall(desc, incoming, logger)
      try {
        const plain = await run(call)
        return { plain, ...givenOf(call) }
      } catch (error) {
        incoming.onFailure?.(givenOf(call))
        throw error
      }
    },
    async callStream(incoming) {
      const call = createCall(desc, incoming, logger)
      const messages = (await run(call)) as Messages
      const { signal, givenResponseHeader: header, givenResponseTrailer: trailer } = call
      return { messages, signal, header, trailer }
    },
  }
}

function givenOf({ givenResponseHeader, givenResponseTrailer }: Call): Given {
  return { header: givenResponseHeader(), trailer: givenResponseTrailer() }
}

function toMessage({ output }: DescMethod, answer: object): Message {
  return create(output, answer as MessageInitShape<DescMessage>)
}

/** The innermost step: the handler. */
function invoke({ desc, handler, chooseForm }: ServedMethod): Next {
  switch (desc.methodKind) {
    case 'unary':
      return async (call) => (await handler(requestOf(call), call)) as object
    case 'server_streaming':
      return async (call) => {
        const answers = handler(requestOf(call), call) as AsyncIterable<object>
        // A form of its own is written from what the handler gave: to make messages of it would cost as much again.
        return call.incoming.protocol === 'rest' && chooseForm !== undefined ? answers : toMessages(desc, answers)
      }
    case 'bidi_streaming':
      return async (call) => toMessages(desc, handler(requestsOf(call), call) as AsyncIterable<object>)
    case 'client_streaming':
      return async (call) => answerOnce(desc, () => handler(requestsOf(call), call))
  }
}

/** The one answer as a stream, as which the protocols treat it. */
async function* answerOnce(desc: DescMethod, answer: () => unknown): Messages {
  yield toMessage(desc, (await answer()) as object)
}

async function* toMessages(desc: DescMethod, answers: AsyncIterable<object>): Messages {
  for await (const answer of answers) yield toMessage(desc, answer)
}

function requestOf({ request }: Call): Message {
  if (request === undefined) throw new TypeError('a handler was reached before its request was read')
  return request
}

function requestsOf({ requests }: Call): Messages {
  if (requests === undefined) throw new TypeError('a handler was reached before its requests were there')
  return requests
}
