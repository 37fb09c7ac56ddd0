import type { Message } from '@bufbuild/protobuf'
import type { Logger } from '../../domain/logger.ts'
import { WaybillError, waybillError } from '../../errors/waybill-error.ts'
import type { Call, Messages } from './call.ts'
import type { Interceptor } from './call-core.ts'
import { codeName, wireFormOfError } from './error-mapping.ts'

/**
 * Writes one line a call: method, protocol, code, reason, duration and account. It stands outermost, so it also turns whatever
 * a call failed with into the error that goes out.
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
        if (Symbol.asyncIterator in answer) return readToEnd(call, answer, end, toWaybillError)
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
  messages: Messages,
  end: (error?: WaybillError) => void,
  toWaybillError: (thrown: unknown) => WaybillError,
): AsyncGenerator<Message> {
  let isLeft = true
  let failure: WaybillError | undefined
  try {
    yield* messages
    isLeft = false
  } catch (thrown) {
    failure = toWaybillError(thrown)
    throw failure
  } finally {
    end(failure ?? (isLeft ? whyLeft(call) : undefined))
  }
}

/** Why a stream was not read to its end: its time was up while its reader had stopped, or nobody is there any more. */
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
  const { requestId, account, incoming } = call
  const fields = {
    requestId,
    method,
    protocol: incoming.protocol,
    code: codeName(error && wireFormOfError(error).code),
    reason: error?.reason,
    durationMs: Math.round((performance.now() - startMs) * 100) / 100,
    account: account?.name,
  }
  logOutcome(logger, fields, error, 'call')
}

/** Loud where this side is to blame; what the caller did wrong is no more than information. */
export function logOutcome(logger: Logger, fields: object, error: WaybillError | undefined, message: string): void {
  if (error === undefined) return logger.info(fields, message)
  const { httpStatus } = wireFormOfError(error)
  const withCause = error.cause === undefined ? fields : { ...fields, err: error.cause }
  if (httpStatus === 500) return logger.error(withCause, message)
  if (httpStatus > 500 && httpStatus !== 501) return logger.warn(withCause, message)
  logger.info(fields, message)
}
