import type { Message } from '@bufbuild/protobuf'
import { MethodOptions_IdempotencyLevel } from '@bufbuild/protobuf/wkt'
import type { Validate } from '../messages/validation.ts'
import { type Answers, Call, type Given, type IncomingCall, type Messages } from './call.ts'
import { type CallCaps, capCalls, refuseWhenFull, type StreamCaps } from './cap-calls.ts'
import { checkRequests } from './check-requests.ts'
import { endLostCalls, type LostServers } from './end-lost-calls.ts'
import { keepDeadline, type TimeLimits } from './keep-deadline.ts'
import { type CallLog, logCalls } from './log-calls.ts'
import { type CallerOptions, requireCaller } from './require-caller.ts'
import type { Interceptor, Next, ServedMethod, ServedService } from './served-method.ts'
import type { Places } from './shares.ts'
import { type ShownToPages, showPages } from './show-pages.ts'
import { type TurnLimits, takeTurns } from './take-turns.ts'
import { type BodyLimits, createBodyWatch } from './watch-bodies.ts'

export interface CallCoreOptions
  extends CallCaps,
    StreamCaps,
    BodyLimits,
    CallerOptions,
    CallLog,
    TimeLimits,
    TurnLimits {
  readonly services: readonly ServedService[]
  readonly validate: Validate
  readonly shownToPages: ShownToPages
  /** Undefined where all accounts are on one server. */
  readonly lostServers?: LostServers | undefined
  /** Of running calls. */
  readonly places: Places
  /** How long the one request of a stream may take to arrive, in milliseconds. */
  readonly requestTimeoutMs: number
}

/** A method with its interceptors, ready to be called. */
export type CallableMethod = ReturnType<typeof compose>

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
 * Makes the call core, which all protocols share. Every call passes the same interceptors in this order: log, deadline, caller, what
 * pages see, whether its server answers, a look whether there is a place, reading and checks of the request, cap, turn. So no request is checked before its caller is known, and none counts as running
 * before it is whole.
 *
 * @returns the methods by path
 */
export function createCallCore(options: CallCoreOptions): ReadonlyMap<string, CallableMethod> {
  const interceptors: readonly Interceptor[] = [
    logCalls(options),
    keepDeadline(options),
    requireCaller(options),
    showPages(options.shownToPages),
    endLostCalls(options.lostServers),
    refuseWhenFull(options.places),
    checkRequests(options.validate, {
      requestTimeoutMs: options.requestTimeoutMs,
      watchBody: createBodyWatch(options),
    }),
    capCalls(options, options.places),
    takeTurns(options),
  ]
  const methods = options.services.flatMap((served) => served.methods)
  return new Map(methods.map((method) => [method.path, compose(method, interceptors)]))
}

function compose(method: ServedMethod, interceptors: readonly Interceptor[]) {
  const { desc, path, chooseForm, eventIdOf } = method
  const run = interceptors.reduceRight((next, interceptor) => interceptor(method, next), invoke(method))
  return {
    desc,
    path,
    chooseForm,
    eventIdOf,
    /** Whether it has no side effects, so that it may be called by GET. */
    readsOnly: desc.idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS,
    /**
     * Runs a call of a unary method from beginning to end.
     *
     * @throws WaybillError and nothing else; already logged
     */
    async callUnary(incoming: IncomingCall): Promise<UnaryAnswer> {
      const call = new Call(desc, incoming)
      try {
        const plain = await run(call)
        return { plain, ...givenOf(call) }
      } catch (error) {
        incoming.onFailure?.(givenOf(call))
        throw error
      }
    },
    /** As `callUnary`, for the methods that take or answer a stream. Iterating the answers throws nothing but WaybillError, too. */
    async callStream(incoming: IncomingCall): Promise<StreamAnswer> {
      const call = new Call(desc, incoming)
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
