import type { Logger } from '../../domain/logger.ts'
import { parseTraceparent, type Span } from '../../domain/telemetry/telemetry.ts'
import { kindOf, WaybillError, waybillError } from '../../errors/waybill-error.ts'
import { type Answers, type Call, holderOf, isStream, type Protocol } from './call.ts'
import { type ClassifyFailure, codeName, retryAfterSeconds, toWaybillError, wireFormOfError } from './error-mapping.ts'
import type { Observed } from './observe-calls.ts'
import type { Interceptor, ServedMethod } from './served-method.ts'

export interface CallLog {
  readonly logger: Logger
  readonly refusalLog: RefusalLog
  readonly classify: ClassifyFailure
  /** Which calls have a line; default all. Failures of this process have one in any case. */
  readonly loggedCalls?: LoggedCalls | undefined
  readonly observed?: Observed
}

/** `FAILED`: those that ended with an error. A number from 0 to 1: these, and that part of the others. `NONE`: neither. */
export type LoggedCalls = number | 'FAILED' | 'NONE'

/**
 * Writes one line for each call: method, protocol, code, reason, duration, and whose it is. The outermost interceptor, which also makes
 * whatever was thrown into the error that is sent, so that the line and the wire agree.
 */
export function logCalls(log: CallLog): Interceptor {
  const { observed, classify } = log
  return (method, next) => {
    const name = `${method.desc.parent.typeName}/${method.desc.name}`
    return async (call) => {
      const startMs = performance.now()
      const { span, end: report } = observed?.begin(name, call) ?? {}
      const end = (error?: WaybillError): void => {
        report?.(error)
        writeCall(log, { name, method, call, startMs }, error)
      }
      const run = () => next(call)
      try {
        const answer = await (span === undefined ? run() : span.run(run))
        if (isStream(answer)) {
          // A stream may also be abandoned before anybody has begun to read it.
          if (report !== undefined) call.incoming.onHangUp(() => report(whyLeft(call)))
          return readToEnd(call, span === undefined ? answer : within(span, answer), end, classify)
        }
        end()
        return answer
      } catch (thrown) {
        const error = toWaybillError(thrown, classify)
        end(error)
        throw error
      }
    }
  }
}

interface EndedCall {
  /** The full name of its method. */
  readonly name: string
  readonly method: ServedMethod
  readonly call: Call
  readonly startMs: number
}

function writeCall(
  { logger, refusalLog, loggedCalls = 1 }: CallLog,
  { name, method, call, startMs }: EndedCall,
  error: WaybillError | undefined,
): void {
  if (!isLogged(loggedCalls, error, call.incoming.protocol)) return
  const { requestId, caller, incoming } = call
  const { protocol, headers } = incoming
  const outcome = outcomeOf(error, protocol, startMs)
  const fields = {
    requestId,
    traceId: call.traceId ?? parseTraceparent(headers['traceparent'])?.traceId,
    method: name,
    protocol,
    ...outcome,
    status: httpStatusOf(error, protocol, method),
    account: caller?.account.name,
    key: caller?.keyId ?? (error?.reason === 'INVALID_API_KEY' ? hintOf(headers['x-api-key']) : undefined),
    client: incoming.clientAddress(),
  }
  const write = () => logOutcome(logger, 'call', { fields, error, protocol })
  if (error === undefined) return write()
  writeRefusal(refusalLog, { error, name: holderOf(call).name, isKeyless: caller === undefined }, write)
}

/** Whether a call, or a request that is none, has a line. */
export function isLogged(logged: LoggedCalls, error: WaybillError | undefined, protocol: Protocol): boolean {
  if (error !== undefined) return logged !== 'NONE' || levelOf(error, protocol) !== 'info'
  return typeof logged === 'number' && (logged >= 1 || Math.random() < logged)
}

/** The status that a proxy sees: gRPC, gRPC-Web and streams of Connect have 200 for every call. */
function httpStatusOf(error: WaybillError | undefined, protocol: Protocol, { desc }: ServedMethod): number {
  const isPlain = protocol === 'rest' || (protocol === 'connect' && desc.methodKind === 'unary')
  return error === undefined || !isPlain ? 200 : wireFormOfError(error, protocol).httpStatus
}

/** The first characters of a key, as `keys list` shows them; undefined for a text that does not begin as a key, which may be another secret. */
function hintOf(sent: string | readonly string[] | undefined): string | undefined {
  return (typeof sent === 'string' && /^wbp?_[0-9A-Za-z]{4}/.exec(sent)?.[0]) || undefined
}

/** Has the answers of a stream made within its span, whoever reads them. */
async function* within(span: Span, answers: Answers): Answers {
  const iterator = answers[Symbol.asyncIterator]()
  try {
    for (;;) {
      const result = await span.run(() => iterator.next())
      if (result.done === true) return
      yield result.value
    }
  } finally {
    await iterator.return?.()
  }
}

async function* readToEnd(
  call: Call,
  answers: Answers,
  end: (error?: WaybillError) => void,
  classify: ClassifyFailure,
): Answers {
  let isLeft = true
  let failure: WaybillError | undefined
  try {
    yield* answers
    isLeft = false
  } catch (thrown) {
    failure = toWaybillError(thrown, classify)
    throw failure
  } finally {
    end(failure ?? (isLeft ? whyLeft(call) : undefined))
  }
}

/** Why a stream was not read to its end: the call was ended while its reader took nothing, or the reader has left. */
function whyLeft({ signal }: Call): WaybillError {
  return signal.reason instanceof WaybillError ? signal.reason : waybillError('CALL_CANCELLED', {})
}

/**
 * Writes the line of an error; of refusals that a caller may cause without end only some.
 *
 * @param refused.name - of the caller: key or address
 */
export function writeRefusal(
  log: RefusalLog,
  refused: { readonly error: WaybillError; readonly name: string; readonly isKeyless: boolean },
  write: () => void,
): void {
  const { error, name, isKeyless } = refused
  const { reason } = error
  // A caller that learns when to try again may go on trying.
  if (retryAfterSeconds(error) !== undefined) log.once(name, reason, write)
  else if (isKeyless && kindOf(reason) !== 'INTERNAL') log.each(write)
  else write()
}

/** Code, reason and duration, as every line about a call or a request has them. */
export function outcomeOf(error: WaybillError | undefined, protocol: Protocol, startMs: number) {
  return {
    code: codeName(error && wireFormOfError(error, protocol).code),
    reason: error?.reason,
    durationMs: Math.round((performance.now() - startMs) * 100) / 100,
  }
}

/** Writes a failure of this process as an error, an unavailable dependency as a warning, a mistake of the caller as information. */
export function logOutcome(
  logger: Logger,
  message: 'call' | 'request',
  { fields, error, protocol }: { fields: object; error: WaybillError | undefined; protocol: Protocol },
): void {
  const level = error === undefined ? 'info' : levelOf(error, protocol)
  logger[level](level === 'info' || error?.cause === undefined ? fields : { ...fields, err: error.cause }, message)
}

function levelOf(error: WaybillError, protocol: Protocol): 'info' | 'warn' | 'error' {
  const { httpStatus } = wireFormOfError(error, protocol)
  if (httpStatus === 500) return 'error'
  return httpStatus > 500 && httpStatus !== 501 ? 'warn' : 'info'
}

export type RefusalLog = ReturnType<typeof createRefusalLog>

const EVERY_MS = 60_000
const MAX_LINES = 1_000

/**
 * Makes what writes lines of refusals, which anybody can cause without end. What is left out is counted, and reported in one line at the end of the
 * minute.
 */
export function createRefusalLog(logger: Logger) {
  let reported = new Set<string>()
  let lines = 0
  let leftOut = 0
  let timer: NodeJS.Timeout | undefined

  function endMinute(): void {
    timer = undefined
    if (leftOut > 0)
      logger.info({ refusals: leftOut }, 'more refusals like those of the last minute, not logged one by one')
    reported = new Set()
    lines = 0
    leftOut = 0
  }

  function tell(write: () => void): void {
    timer ??= setTimeout(endMinute, EVERY_MS).unref()
    if (lines >= MAX_LINES) leftOut += 1
    else {
      lines += 1
      write()
    }
  }

  return {
    /** So many lines a minute in all, for single mistakes of callers without a key. */
    each: tell,
    /** Of each name and reason one line a minute, for refusals that go on until somebody stops. */
    once(name: string, reason: string, write: () => void): void {
      const key = `${reason} ${name}`
      if (reported.has(key)) leftOut += 1
      else {
        if (reported.size < MAX_LINES) reported.add(key)
        tell(write)
      }
    },
  }
}
