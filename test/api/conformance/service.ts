import { setTimeout as delay } from 'node:timers/promises'
import { create, type DescMessage, type DescService, type Message } from '@bufbuild/protobuf'
import { type Any, anyPack } from '@bufbuild/protobuf/wkt'
import { Code, ConnectError, type HandlerContext } from '@connectrpc/connect'
import { type ServedService, serveService } from '../../../src/api/calls/served-method.ts'

/*
 * The messages of connectrpc/conformance/v1/service.proto, as far as the handlers read them. The protos come with the suite and are
 * compiled when it runs, so there is no generated code.
 */
interface Header {
  readonly name: string
  readonly value: readonly string[]
}

interface ErrorDefinition {
  readonly code: Code
  readonly message?: string
  readonly details: readonly Any[]
}

/** The response that the suite asks for. Unary methods have `response`, streams have `responseData` and `error`. */
interface ResponseDefinition {
  readonly responseHeaders: readonly Header[]
  readonly responseTrailers: readonly Header[]
  readonly responseDelayMs: number
  readonly response?:
    | { readonly case: 'responseData'; readonly value: Uint8Array }
    | { readonly case: 'error'; readonly value: ErrorDefinition }
    | { readonly case: undefined }
  readonly responseData?: readonly Uint8Array[]
  readonly error?: ErrorDefinition
}

type Request = Message & { readonly responseDefinition?: ResponseDefinition; readonly fullDuplex?: boolean }
type Requests = AsyncIterable<Request>

/**
 * Serves `connectrpc.conformance.v1.ConformanceService` as its proto file describes.
 *
 * @param service - compiled from the suite's protos
 */
export function serveConformance(service: DescService): ServedService {
  const { unary, clientStream, serverStream, bidiStream } = handlersOf(requestInfoOf(service))
  const handlers = { unary, idempotentUnary: unary, serverStream, clientStream, bidiStream, unimplemented }
  const access = Object.fromEntries(service.methods.map(({ localName }) => [localName, 'payments:read']))
  return serveService(service, handlers as never, access as never)
}

/** The handlers of the four kinds. */
function handlersOf(info: RequestInfo) {
  async function unary(request: Request, context: HandlerContext) {
    return answerOnce(info, [request], context)
  }

  async function clientStream(requests: Requests, context: HandlerContext) {
    return answerOnce(info, await readAll(requests), context)
  }

  async function* serverStream(request: Request, context: HandlerContext) {
    setHeaders(request.responseDefinition, context)
    yield* answerRest(info, [request], request.responseDefinition, context)
  }

  async function* bidiStream(requests: Requests, context: HandlerContext) {
    const iterator = requests[Symbol.asyncIterator]()
    const first = await iterator.next()
    if (first.done === true) return
    const { responseDefinition: definition, fullDuplex } = first.value
    setHeaders(definition, context)
    const rest = { [Symbol.asyncIterator]: () => iterator }
    if (fullDuplex !== true) {
      yield* answerRest(info, [first.value, ...(await readAll(rest))], definition, context)
      return
    }
    yield* answerEach(info, first.value, rest, definition, context)
  }

  return { unary, clientStream, serverStream, bidiStream }
}

async function answerOnce(info: RequestInfo, requests: readonly Request[], context: HandlerContext) {
  const definition = requests[0]?.responseDefinition
  setHeaders(definition, context)
  await delay(definition?.responseDelayMs)
  const requestInfo = info.make(requests, context)
  const { response } = definition ?? {}
  if (response?.case === 'error') throw toConnectError(response.value, info.toAny(requestInfo))
  return { payload: { requestInfo, ...(response?.case === 'responseData' && { data: response.value }) } }
}

/** Answers each request with one message; when the requests have ended, sends the remaining messages. */
async function* answerEach(
  info: RequestInfo,
  first: Request,
  rest: Requests,
  definition: ResponseDefinition | undefined,
  context: HandlerContext,
) {
  const [data, ...more] = definition?.responseData ?? []
  if (data === undefined) return yield* answerRest(info, [first], definition, context)
  await delay(definition?.responseDelayMs)
  yield { payload: { data, requestInfo: info.make([first], context) } }
  for await (const request of rest) {
    const next = more.shift()
    if (next === undefined) break
    await delay(definition?.responseDelayMs)
    yield { payload: { data: next, requestInfo: info.ofRequests([request]) } }
  }
  for (const left of more) {
    await delay(definition?.responseDelayMs)
    yield { payload: { data: left } }
  }
  if (definition?.error !== undefined) throw toConnectError(definition.error)
}

/** Sends all messages of the definition, the first one with the requests that were read. */
async function* answerRest(
  info: RequestInfo,
  requests: readonly Request[],
  definition: ResponseDefinition | undefined,
  context: HandlerContext,
) {
  const requestInfo = info.make(requests, context)
  const messages = definition?.responseData ?? []
  for (const [index, data] of messages.entries()) {
    await delay(definition?.responseDelayMs)
    yield { payload: { data, ...(index === 0 && { requestInfo }) } }
  }
  if (definition?.error === undefined) return
  throw toConnectError(definition.error, ...(messages.length === 0 ? [info.toAny(requestInfo)] : []))
}

async function unimplemented() {
  throw new ConnectError('not implemented', Code.Unimplemented)
}

type RequestInfo = ReturnType<typeof requestInfoOf>

/** Makes the messages in which the service reports the requests that it received. */
function requestInfoOf(service: DescService) {
  const desc = findMessage(service, 'ConformancePayload').nestedMessages.find(({ name }) => name === 'RequestInfo')
  if (desc === undefined) throw new Error('ConformancePayload has no RequestInfo')
  const inputs = new Map(service.methods.map(({ input }) => [input.typeName, input]))
  const pack = (request: Request) => {
    const input = inputs.get(request.$typeName)
    if (input === undefined) throw new TypeError(`${request.$typeName} is not a request`)
    return anyPack(input, request)
  }
  const ofRequests = (requests: readonly Request[]) => create(desc, { requests: requests.map(pack) })
  return {
    ofRequests,
    make(requests: readonly Request[], { requestHeader, timeoutMs }: HandlerContext) {
      const isTimed = requestHeader.has('connect-timeout-ms') || requestHeader.has('grpc-timeout')
      const headers = [...requestHeader].map(([name, value]) => ({ name, value: [value] }))
      return create(desc, {
        requestHeaders: headers,
        requests: requests.map(pack),
        ...(isTimed && { timeoutMs: BigInt(Math.round(timeoutMs() ?? 0)) }),
      })
    },
    toAny: (requestInfo: Message) => anyPack(desc, requestInfo),
  }
}

function findMessage({ file }: DescService, name: string): DescMessage {
  const message = file.messages.find((each) => each.name === name)
  if (message === undefined) throw new Error(`${file.name} has no ${name}`)
  return message
}

async function readAll(requests: Requests): Promise<Request[]> {
  const all: Request[] = []
  for await (const request of requests) all.push(request)
  return all
}

function setHeaders(definition: ResponseDefinition | undefined, { responseHeader, responseTrailer }: HandlerContext) {
  addAll(definition?.responseHeaders, responseHeader)
  addAll(definition?.responseTrailers, responseTrailer)
}

function addAll(defined: readonly Header[] = [], headers: Headers): void {
  for (const { name, value } of defined) for (const each of value) headers.append(name, each)
}

function toConnectError({ code, message, details }: ErrorDefinition, ...more: readonly Any[]): ConnectError {
  const error = new ConnectError(message ?? '', code)
  error.details = [...details, ...more].map(({ typeUrl, value }) => ({
    type: typeUrl.slice(typeUrl.lastIndexOf('/') + 1),
    value,
  }))
  return error
}
