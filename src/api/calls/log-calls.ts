import type { Logger } from '../../domain/logger.ts'
import { WaybillError, waybillError } from '../../errors/waybill-error.ts'
import { type Answers, type Call, isStream, type Protocol } from './call.ts'
import { codeName, wireFormOfError } from './error-mapping.ts'
import type { Interceptor } from './served-method.ts'

/**
 * Writes one line for each call: method, protocol, code, reason, duration and account. The outermost interceptor, which also turns
 * whatever was thrown into the error that is sent, so that the line and the wire agree.
 */
export function logCalls({
  logger,
  toWaybillError,
}: {
  readonly logger: Logger
  readonly toWaybillError: (thrown: unknown) => WaybillError
}): Interceptor {
  return ({ desc }, next) => {
    const method = `${desc.parent.typeName}/${desc.name}`
    return async (call) => {
      const startMs = performance.now()
      const end = (error?: WaybillError) => writeLine(logger, { call, method, startMs, error })
      try {
        const answer = await next(call)
        if (isStream(answer)) return readToEnd(call, answer, end, toWaybillError)
        end()
        return answer
      } catch (thrown) {
        const error = toWaybillError(thrown)
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
  toWaybillError: (thrown: unknown) => WaybillError,
): Answers {
  let isLeft = true
  let failure: WaybillError | undefined
  try {
    yield* answers
    isLeft = false
  } catch (thrown) {
    failure = toWaybillError(thrown)
    throw failure
  } finally {
    end(failure ?? (isLeft ? whyLeft(call) : undefined))
  }
}

/** Why a stream was not read to its end: the call was ended while its reader took nothing, or the reader has left. */
function whyLeft({ signal }: Call): WaybillError {
  return signal.reason instanceof WaybillError ? signal.reason : waybillError('CALL_CANCELLED', {})
}

interface EndedCall {
  readonly call: Call
  readonly method: string
  readonly startMs: number
  readonly error: WaybillError | undefined
}

function writeLine(logger: Logger, { call, method, startMs, error }: EndedCall): void {
  const { requestId, caller, incoming } = call
  const { protocol } = incoming
  const fields = { requestId, method, protocol, ...outcomeOf(error, protocol, startMs), account: caller?.account.name }
  logOutcome(logger, { fields, error, protocol }, 'call')
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
  {
    fields,
    error,
    protocol,
  }: { readonly fields: object; readonly error: WaybillError | undefined; readonly protocol: Protocol },
  message: string,
): void {
  if (error === undefined) return logger.info(fields, message)
  const { httpStatus } = wireFormOfError(error, protocol)
  const withCause = error.cause === undefined ? fields : { ...fields, err: error.cause }
  if (httpStatus === 500) return logger.error(withCause, message)
  if (httpStatus > 500 && httpStatus !== 501) return logger.warn(withCause, message)
  logger.info(fields, message)
}
