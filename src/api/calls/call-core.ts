import { clearField, type DescMessage, type DescMethod, type Message } from '@bufbuild/protobuf'
import type { Telemetry } from '../../domain/telemetry/telemetry.ts'
import { within } from '../../domain/within.ts'
import { mergeErrors, violationsOf } from '../../errors/gather-errors.ts'
import { kindOf, WaybillError, waybillError } from '../../errors/waybill-error.ts'
import { TranscodingError } from '../../transcoding/errors/transcoding-error.ts'
import { deprecationHeaders } from '../messages/proto-options.ts'
import { fromTranscodingError } from '../messages/request-errors.ts'
import type { Validate } from '../messages/validation.ts'
import { type Answers, Call, type Ending, type Given, type IncomingCall, type Messages } from './call.ts'
import { type CallCaps, capCalls, refuseWhenFull, type StreamCaps } from './cap-calls.ts'
import { endLostCalls, type LostServers } from './end-lost-calls.ts'
import { keepDeadline, type TimeLimits } from './keep-deadline.ts'
import { type CallLog, logCalls } from './log-calls.ts'
import { type CallerOptions, requireCaller } from './require-caller.ts'
import type { Interceptor, Next, ServedMethod, ServedService } from './served-method.ts'
import type { Places } from './shares.ts'
import { type ShownToPages, showPages } from './show-pages.ts'
import { type SlotLimits, takeSlots } from './take-slots.ts'
import { type BodyLimits, createBodyWatch } from './watch-bodies.ts'

export interface CallCoreOptions
  extends CallCaps,
    StreamCaps,
    BodyLimits,
    CallerOptions,
    CallLog,
    TimeLimits,
    Pick<Ending, 'cutting'>,
    SlotLimits {
  readonly services: readonly ServedService[]
  readonly validate: Validate
  readonly shownToPages: ShownToPages
  readonly telemetry?: Telemetry | undefined
  /** Undefined where all accounts are on one server. */
  readonly lostServers?: LostServers | undefined
  /** Of running calls. */
  readonly places: Places
  /** How long the one request of a stream may take to arrive, in milliseconds. */
  readonly requestTimeoutMs: number
}

/** A method with its interceptors, ready to be called. */
export type CallableMethod = ReturnType<typeof compose>

/** How a unary call ended: what its handler returned, or an error that is already logged. With the headers and trailers of the handler. */
export type UnaryOutcome = Given & ({ readonly plain: object } | { readonly error: WaybillError })

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
 * pages see, whether its server answers, a check that there is a place, reading and checks of the request, cap, slot. So no request is checked before its caller is known, and none counts as running
 * before it is whole.
 *
 * @returns the methods by path
 */
export function createCallCore(options: CallCoreOptions): ReadonlyMap<string, CallableMethod> {
  const interceptors: readonly Interceptor[] = [
    tellDeprecation,
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
    takeSlots(options),
  ]
  const methods = options.services.flatMap((served) => served.methods)
  return new Map(methods.map((method) => [method.path, compose(method, interceptors)]))
}

/** Says in the headers of every answer of a method that is on its way out how long it still works. */
function tellDeprecation({ desc }: ServedMethod, next: Next): Next {
  const headers = deprecationHeaders(desc)
  if (headers === undefined) return next
  return (call) => {
    call.incoming.addHeaders(headers)
    return next(call)
  }
}

function compose(method: ServedMethod, interceptors: readonly Interceptor[]) {
  const { desc, path, readsOnly, chooseForm, eventIdOf } = method
  const run = interceptors.reduceRight((next, interceptor) => interceptor(method, next), invoke(method))
  return {
    desc,
    path,
    chooseForm,
    eventIdOf,
    readsOnly,
    /** Runs a call of a unary method from beginning to end. Never rejects. */
    async callUnary(incoming: IncomingCall): Promise<UnaryOutcome> {
      const call = new Call(desc, incoming)
      const outcome = await run(call).then(
        (plain) => ({ plain }),
        (error: WaybillError) => ({ error }),
      )
      return { ...outcome, header: call.givenResponseHeader(), trailer: call.givenResponseTrailer() }
    },
    /**
     * Runs a call of a method that takes or answers a stream.
     *
     * @throws WaybillError and nothing else, also when the answers are read; already logged
     */
    async callStream(incoming: IncomingCall): Promise<StreamAnswer> {
      const call = new Call(desc, incoming)
      const answers = (await run(call)) as Answers
      const header = () => call.givenResponseHeader()
      return { answers, signal: call.signal, header, trailer: () => call.givenResponseTrailer() }
    },
  }
}

/** The innermost step: the handler. The request has been read by then. */
function invoke({ desc, handler }: ServedMethod): Next {
  switch (desc.methodKind) {
    case 'unary':
      return async (call) => (await handler(call.request as Message, call)) as object
    case 'server_streaming':
      return async (call) => handler(call.request as Message, call) as Answers
    case 'bidi_streaming':
      return async (call) => handler(call.requests as Messages, call) as Answers
    case 'client_streaming':
      return async (call) => answerOnce(() => handler(call.requests as Messages, call))
  }
}

/** The one answer of a method as a stream: the protocols write both alike. */
async function* answerOnce(answer: () => unknown): Answers {
  yield (await answer()) as object
}

interface ReadTerms {
  /** How long the one request of a stream may take to arrive, in milliseconds; that of a unary call has the time of the call. */
  readonly requestTimeoutMs: number
  /** Watches how the body arrives, and ends the call if it does so too slowly. @returns to be called when it has been read */
  readonly watchBody: (call: Call) => () => void
}

/** Reads the request, and refuses values that break the rules of its definition. */
function checkRequests(validate: Validate, terms: ReadTerms): Interceptor {
  return (method, next) => {
    const { desc } = method
    const { input } = desc
    if (desc.methodKind === 'bidi_streaming' || desc.methodKind === 'client_streaming') {
      return (call) => {
        call.requests = checkAll(call.incoming.requests ?? none(), input, validate)
        return next(call)
      }
    }
    return async (call) => {
      try {
        call.request = await read(call, desc, terms)
        validate(input, call.request)
      } catch (error) {
        throw await tellAll(error, call, method, validate)
      }
      return next(call)
    }
  }
}

async function read(call: Call, { methodKind }: DescMethod, { requestTimeoutMs, watchBody }: ReadTerms) {
  call.isReading = true
  const stopWatching = watchBody(call)
  try {
    const reading = call.incoming.readRequest()
    if (methodKind === 'unary') return await reading
    return await within(requestTimeoutMs, reading, () => {
      throw waybillError('REQUEST_TOO_SLOW', { timeoutMs: requestTimeoutMs })
    })
  } finally {
    call.isReading = false
    stopWatching()
  }
}

/**
 * Adds to the first mistake of a request all others: those of its decoder, those of broken rules, and those that the handler would
 * find. A check does not see the fields that are known to be wrong.
 */
async function tellAll(
  thrown: unknown,
  call: Call,
  { desc, check: checkValues }: ServedMethod,
  validate: Validate,
): Promise<unknown> {
  const first = withReason(thrown, desc.input)
  if (!isMistake(first)) return first
  const request = thrown instanceof TranscodingError ? thrown.decoded : call.request
  if (request === undefined) return first
  const mistakes = [first]
  const checks: readonly (() => unknown)[] = [() => validate(desc.input, request), () => checkValues?.(request, call)]
  for (const check of checks) {
    clearWrong(desc.input, request, mistakes)
    try {
      await check()
    } catch (error) {
      mistakes.push(...newsOf(error, mistakes))
    }
  }
  return mergeErrors(mistakes)
}

function isMistake(thrown: unknown): thrown is WaybillError {
  return thrown instanceof WaybillError && kindOf(thrown.reason) === 'INVALID_INPUT'
}

function clearWrong({ fields }: DescMessage, request: Message, mistakes: readonly WaybillError[]): void {
  const wrong = wrongFields(mistakes)
  for (const field of fields) if (wrong.has(field.jsonName)) clearField(request, field)
}

function wrongFields(mistakes: readonly WaybillError[]): ReadonlySet<string> {
  return new Set(mistakes.flatMap(violationsOf).map(({ field }) => topOf(field)))
}

/** What an error says of other fields, such as that one is missing; nothing if it is no mistake of the caller. */
function newsOf(thrown: unknown, reported: readonly WaybillError[]): readonly WaybillError[] {
  if (!isMistake(thrown)) return []
  const known = wrongFields(reported)
  const violations = violationsOf(thrown).filter(({ field }) => field === '' || !known.has(topOf(field)))
  const { reason, message, metadata } = thrown
  return violations.length === 0 ? [] : [new WaybillError(reason, message, metadata, { violations })]
}

/** The field of the request that a path begins with: `status` of `status[2]`. */
function topOf(path: string): string {
  return path.split(/[.[]/, 1)[0] ?? path
}

async function* checkAll(requests: Messages, input: DescMessage, validate: Validate): Messages {
  // Errors of the handler are not caught here: a generator does not see what its reader throws.
  try {
    for await (const request of requests) {
      validate(input, request)
      yield request
    }
  } catch (error) {
    throw withReason(error, input)
  }
}

/** Gives the errors of a decoder their reasons, for the requests of all protocols. */
function withReason(error: unknown, input: DescMessage): unknown {
  if (!(error instanceof TranscodingError)) return error
  return mergeErrors([error, ...error.others].map((each) => fromTranscodingError(each, input)))
}

async function* none(): Messages {}
