import type { Logger } from '../../domain/logger.ts'
import { kindOf, WaybillError, waybillError } from '../../errors/waybill-error.ts'
import { type Answers, type Call, holderOf, isStream, type Protocol } from './call.ts'
import { type ClassifyFailure, codeName, retryAfterSeconds, toWaybillError, wireFormOfError } from './error-mapping.ts'
import type { Interceptor } from './served-method.ts'

export interface CallLog {
  readonly logger: Logger
  readonly refusalLog: RefusalLog
  readonly classify: ClassifyFailure
}

/**
 * Writes one line for each call: method, protocol, code, reason, duration and account. The outermost interceptor, which also makes
 * whatever was thrown into the error that is sent, so that the line and the wire agree.
 */
export function logCalls({ logger, refusalLog, classify }: CallLog): Interceptor {
  return ({ desc }, next) => {
    const method = `${desc.parent.typeName}/${desc.name}`
    return async (call) => {
      const startMs = performance.now()
      const end = (error?: WaybillError): void => {
        const { requestId, caller } = call
        const { protocol } = call.incoming
        const outcome = outcomeOf(error, protocol, startMs)
        const fields = { requestId, method, protocol, ...outcome, account: caller?.account.name }
        const write = () => logOutcome(logger, 'call', { fields, error, protocol })
        if (error === undefined) return write()
        writeRefusal(refusalLog, { error, name: holderOf(call).name, isKeyless: caller === undefined }, write)
      }
      try {
        const answer = await next(call)
        if (isStream(answer)) return readToEnd(call, answer, end, classify)
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
  if (error === undefined) return logger.info(fields, message)
  const { httpStatus } = wireFormOfError(error, protocol)
  const withCause = error.cause === undefined ? fields : { ...fields, err: error.cause }
  if (httpStatus === 500) return logger.error(withCause, message)
  if (httpStatus > 500 && httpStatus !== 501) return logger.warn(withCause, message)
  logger.info(fields, message)
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
