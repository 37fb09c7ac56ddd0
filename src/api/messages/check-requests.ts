import type { DescMessage, DescMethod, Message } from '@bufbuild/protobuf'
import { waybillError } from '../../errors/waybill-error.ts'
import { TranscodingError } from '../../transcoding/transcoding-error.ts'
import type { Call, Messages } from '../calls/call.ts'
import type { Interceptor } from '../calls/served-method.ts'
import { fromTranscodingError } from './request-errors.ts'
import { compileUnknownCheck } from './unknown-numbers.ts'
import type { Validate } from './validation.ts'

/**
 * Reads the request. Refuses fields and enum numbers that its definition does not know, and values that break its rules.
 *
 * @param requestTimeoutMs - how long the one request of a stream may take to arrive; that of a unary call has the time of the call
 */
export function checkRequests(validate: Validate, requestTimeoutMs: number): Interceptor {
  return ({ desc }, next) => {
    const refuseUnknown = compileUnknownCheck(desc.input)
    const check = (request: Message) => {
      refuseUnknown(request)
      validate(desc.input, request)
    }
    if (desc.methodKind === 'bidi_streaming' || desc.methodKind === 'client_streaming') {
      return (call) => {
        call.requests = checkAll(call.incoming.requests ?? none(), desc.input, check)
        return next(call)
      }
    }
    return async (call) => {
      call.request = await read(call, desc, requestTimeoutMs)
      check(call.request)
      return next(call)
    }
  }
}

async function read(call: Call, { methodKind, input }: DescMethod, timeoutMs: number): Promise<Message> {
  call.isReading = true
  try {
    const reading = call.incoming.readRequest()
    return await (methodKind === 'unary' ? reading : within(timeoutMs, reading))
  } catch (error) {
    throw withReason(error, input)
  } finally {
    call.isReading = false
  }
}

async function within<T>(timeoutMs: number, reading: Promise<T>): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(waybillError('REQUEST_TOO_SLOW', { timeoutMs })), timeoutMs)
  try {
    return await Promise.race([reading, late])
  } finally {
    clearTimeout(timer)
  }
}

async function* checkAll(requests: Messages, input: DescMessage, check: (request: Message) => void): Messages {
  // Errors of the handler are not caught here: a generator does not see what its reader throws.
  try {
    for await (const request of requests) {
      check(request)
      yield request
    }
  } catch (error) {
    throw withReason(error, input)
  }
}

/** Gives an error of a decoder its reason, for the requests of all protocols. */
function withReason(error: unknown, input: DescMessage): unknown {
  return error instanceof TranscodingError ? fromTranscodingError(error, input) : error
}

async function* none(): Messages {}
