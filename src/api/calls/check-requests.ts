import { clearField, type DescMessage, type DescMethod, type Message } from '@bufbuild/protobuf'
import { mergeErrors, violationsOf } from '../../errors/gather-errors.ts'
import { kindOf, WaybillError, waybillError } from '../../errors/waybill-error.ts'
import { TranscodingError } from '../../transcoding/errors/transcoding-error.ts'
import { fromTranscodingError } from '../messages/request-errors.ts'
import { compileUnknownCheck, type UnknownCheck } from '../messages/unknown-numbers.ts'
import type { Validate } from '../messages/validation.ts'
import type { Call, Messages } from './call.ts'
import type { Interceptor, ServedMethod } from './served-method.ts'

export interface ReadTerms {
  /** How long the one request of a stream may take to arrive, in milliseconds; that of a unary call has the time of the call. */
  readonly requestTimeoutMs: number
  /** Watches how the body arrives, and ends the call if it does so too slowly. @returns to be called when it has been read */
  readonly watchBody: (call: Call) => () => void
}

/** Reads the request. Refuses fields and enum numbers that its definition does not know, and values that break its rules. */
export function checkRequests(validate: Validate, terms: ReadTerms): Interceptor {
  return (method, next) => {
    const { desc } = method
    const checks = [compileUnknownCheck(desc.input), (request: Message) => validate(desc.input, request)]
    if (desc.methodKind === 'bidi_streaming' || desc.methodKind === 'client_streaming') {
      return (call) => {
        call.requests = checkAll(call.incoming.requests ?? none(), desc.input, checks)
        return next(call)
      }
    }
    return async (call) => {
      try {
        call.request = await read(call, desc, terms)
        for (const check of checks) check(call.request)
      } catch (error) {
        throw await tellAll(error, call, method, checks)
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
    return await (methodKind === 'unary' ? reading : within(requestTimeoutMs, reading))
  } finally {
    call.isReading = false
    stopWatching()
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

/**
 * Adds to the first mistake of a request all others: those of its decoder, those that each check finds, and those that the handler would
 * find. A check does not see the fields that are known to be wrong.
 */
async function tellAll(
  thrown: unknown,
  call: Call,
  { desc, check: checkValues }: ServedMethod,
  checks: readonly UnknownCheck[],
): Promise<unknown> {
  const first = withReason(thrown, desc.input)
  if (!isMistake(first)) return first
  const request = thrown instanceof TranscodingError ? thrown.decoded : call.request
  if (request === undefined) return first
  const mistakes = [first]
  const all: readonly ((request: Message) => unknown)[] = [...checks, () => checkValues?.(request, call)]
  for (const check of all) {
    clearWrong(desc.input, request, mistakes)
    try {
      await check(request)
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
function newsOf(thrown: unknown, told: readonly WaybillError[]): readonly WaybillError[] {
  if (!isMistake(thrown)) return []
  const known = wrongFields(told)
  const violations = violationsOf(thrown).filter(({ field }) => field === '' || !known.has(topOf(field)))
  const { reason, message, metadata } = thrown
  return violations.length === 0 ? [] : [new WaybillError(reason, message, metadata, { violations })]
}

/** The field of the request that a path begins with: `status` of `status[2]`. */
function topOf(path: string): string {
  return path.split(/[.[]/, 1)[0] ?? path
}

async function* checkAll(requests: Messages, input: DescMessage, checks: readonly UnknownCheck[]): Messages {
  // Errors of the handler are not caught here: a generator does not see what its reader throws.
  try {
    for await (const request of requests) {
      for (const check of checks) check(request)
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
