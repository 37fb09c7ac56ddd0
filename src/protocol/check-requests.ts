import type { DescMethod, Message } from '@bufbuild/protobuf'
import { TranscodingError } from '../transcoding/transcoding-error.ts'
import type { Call, Messages } from './call.ts'
import type { Interceptor } from './call-core.ts'
import { fromTranscodingError } from './request-errors.ts'
import { compileUnknownCheck } from './unknown-fields.ts'
import type { Validate } from './validation.ts'

/** Reads the request and lets it pass only when its definition knows all of it and its rules hold. */
export function checkRequests(validate: Validate): Interceptor {
  return ({ desc }, next) => {
    const refuseUnknown = compileUnknownCheck(desc.input)
    const check = (request: Message) => {
      refuseUnknown(request)
      validate(desc.input, request)
    }
    if (desc.methodKind === 'bidi_streaming' || desc.methodKind === 'client_streaming') {
      return (call) => {
        call.requests = checkAll(call.incoming.requests ?? none(), check)
        return next(call)
      }
    }
    return async (call) => {
      call.request = await read(call, desc)
      check(call.request)
      return next(call)
    }
  }
}

async function read(call: Call, { input }: DescMethod): Promise<Message> {
  call.isReading = true
  try {
    return await call.incoming.readRequest()
  } catch (error) {
    throw error instanceof TranscodingError ? fromTranscodingError(error, input) : error
  } finally {
    call.isReading = false
  }
}

async function* checkAll(requests: Messages, check: (request: Message) => void): Messages {
  for await (const request of requests) {
    check(request)
    yield request
  }
}

async function* none(): Messages {}
