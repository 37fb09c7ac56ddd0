/**
 * The same call over every protocol: each way takes a method and a request as JSON, and returns the outcome in one form, so that outcomes can
 * be compared field by field.
 */
import {
  type DescMessage,
  type DescMethod,
  fromBinary,
  fromJson,
  getOption,
  type JsonObject,
  type JsonValue,
  type Message,
  toBinary,
  toJson,
  type UnknownField,
} from '@bufbuild/protobuf'
import { ConnectError, type Transport } from '@connectrpc/connect'
import { codeFromString, codeToString } from '@connectrpc/connect/protocol-connect'
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from '@connectrpc/connect-node'
import { Client, credentials, Metadata, type ServiceError } from '@grpc/grpc-js'
import { http } from '../../../gen/google/api/annotations_pb.js'
import { BadRequestSchema, ErrorInfoSchema } from '../../../gen/google/rpc/error_details_pb.js'
import { StatusSchema } from '../../../gen/google/rpc/status_pb.js'
import { KeysService } from '../../../gen/payments/v1/keys_service_pb.js'
import { OperationsService } from '../../../gen/payments/v1/operations_service_pb.js'
import { PaymentSearchService } from '../../../gen/payments/v1/payment_search_service_pb.js'
import { RequestsService } from '../../../gen/payments/v1/requests_service_pb.js'
import { RouteSchema } from '../../../gen/payments/v1/route_pb.js'
import { RoutesService } from '../../../gen/payments/v1/routes_service_pb.js'
import { WebhooksService } from '../../../gen/payments/v1/webhooks_service_pb.js'

const methods: ReadonlyMap<string, DescMethod> = new Map(
  [RoutesService, PaymentSearchService, RequestsService, OperationsService, WebhooksService, KeysService].flatMap(
    ({ methods: each }) => each.map((method) => [method.name, method] as const),
  ),
)

/** A method of `payments.v1` by its name. */
export function methodNamed(name: string): DescMethod {
  const method = methods.get(name)
  if (method === undefined) throw new Error(`there is no method ${name}`)
  return method
}

/** `/payments.v1.RoutesService/GetPaymentRoutes` */
export function rpcPathOf({ parent, name }: DescMethod): string {
  return `/${parent.typeName}/${name}`
}

export interface Ask {
  readonly method: DescMethod
  /** By JSON names. May be invalid. */
  readonly request: JsonObject
  /** Fields that the definition does not have, for binary ways. */
  readonly unknownFields?: readonly UnknownField[]
  readonly headers: Readonly<Record<string, string>>
  readonly signal?: AbortSignal
}

/** An error, in the same form for every protocol. */
export interface WireError {
  /** `invalid_argument` */
  readonly code: string
  readonly message: string
  readonly info: JsonValue
  readonly violations: JsonValue
  /** The route in its details. */
  readonly route: JsonValue
  /** `@type` of all details, in order. */
  readonly details: readonly string[]
}

export interface Outcome {
  /** Only of REST and of Connect without a client. */
  readonly httpStatus?: number
  /** The message: as it was sent if the way reads raw JSON, else written by protobuf-es with every implicit field. */
  readonly answer?: JsonValue
  readonly error?: WireError
  /** Whether `answer` is the JSON that was sent. */
  readonly isRaw: boolean
  readonly requestId: string | null
}

/** One way to call. */
export interface Way {
  readonly name: string
  /** Whether it can call only methods without side effects. */
  readonly readsOnly: boolean
  ask(ask: Ask): Promise<Outcome>
}

export interface Ways {
  readonly all: readonly Way[]
  named(name: string): Way
  close(): void
}

/** All ways to a service. */
export function openWays(url: string): Ways {
  const grpc = grpcJs(url)
  const jsonOptions = { ignoreUnknownFields: false }
  const h1 = { baseUrl: url, httpVersion: '1.1', jsonOptions } as const
  const h2 = { baseUrl: url, httpVersion: '2', jsonOptions } as const
  const all: readonly Way[] = [
    rest(url),
    rawConnect(url),
    overTransport('Connect JSON', createConnectTransport({ ...h1, useBinaryFormat: false })),
    overTransport('Connect binary', createConnectTransport({ ...h2, useBinaryFormat: true })),
    getOnly('Connect GET JSON', createConnectTransport({ ...h1, useBinaryFormat: false, useHttpGet: true })),
    getOnly('Connect GET binary', createConnectTransport({ ...h2, useBinaryFormat: true, useHttpGet: true })),
    overTransport('gRPC-Web', createGrpcWebTransport({ ...h1, useBinaryFormat: true })),
    overTransport('gRPC-Web JSON', createGrpcWebTransport({ ...h2, useBinaryFormat: false })),
    overTransport('gRPC of connect', createGrpcTransport({ baseUrl: url, jsonOptions })),
    grpc.way,
  ]
  return {
    all,
    named(name) {
      const way = all.find((each) => each.name === name)
      if (way === undefined) throw new Error(`there is no way ${name}`)
      return way
    },
    close: grpc.close,
  }
}

function rest(url: string): Way {
  return {
    name: 'REST',
    readsOnly: false,
    async ask({ method, request, headers, signal }) {
      const { httpMethod, target, body } = restRequestOf(method, request)
      const contentType = body === undefined ? {} : { 'content-type': 'application/json' }
      const init = { method: httpMethod, headers: { ...headers, ...contentType }, body: body ?? null }
      const response = await fetch(url + target, { ...init, ...(signal && { signal }) })
      const json = (await response.json()) as JsonObject
      const common = { httpStatus: response.status, isRaw: true, requestId: response.headers.get('x-request-id') }
      return response.ok ? { ...common, answer: json } : { ...common, error: ofHttpError(json) }
    },
  }
}

/** Writes a request as google.api.http says: path variables first, the rest in the query or in the body. */
export function restRequestOf(
  method: DescMethod,
  request: JsonObject,
): { httpMethod: string; target: string; body?: string } {
  const { pattern, body } = getOption(method, http)
  if (pattern.case === undefined || pattern.case === 'custom') throw new Error(`${String(method)} has no binding`)
  const httpMethod = pattern.case.toUpperCase()
  const rest = new Map(Object.entries(request))
  const path = pattern.value.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const { jsonName } = method.input.fields.find((field) => field.name === name) ?? { jsonName: name }
    const value = rest.get(jsonName)
    rest.delete(jsonName)
    return encodeURIComponent(textOf(value ?? ''))
  })
  if (body === '*') return { httpMethod, target: path, body: JSON.stringify(Object.fromEntries(rest)) }
  const query = [...rest].flatMap(([name, value]) => parametersOf(name, value))
  return { httpMethod, target: query.length === 0 ? path : `${path}?${query.join('&')}` }
}

/** A field of a message within is a parameter of its own: `exclude.status=FAILED`. */
function parametersOf(name: string, value: JsonValue): string[] {
  if (Array.isArray(value)) return value.flatMap((each) => parametersOf(name, each))
  if (typeof value !== 'object' || value === null) return [`${name}=${encodeURIComponent(textOf(value))}`]
  return Object.entries(value).flatMap(([field, each]) => parametersOf(`${name}.${field}`, each))
}

function textOf(value: JsonValue): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** Connect's JSON without a client, which might lose or add something. */
function rawConnect(url: string): Way {
  return {
    name: 'Connect JSON without a client',
    readsOnly: false,
    async ask({ method, request, headers, signal }) {
      const response = await fetch(url + rpcPathOf(method), {
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/json', 'connect-protocol-version': '1' },
        body: JSON.stringify(request),
        ...(signal && { signal }),
      })
      const json = (await response.json()) as JsonObject
      const common = { httpStatus: response.status, isRaw: true, requestId: response.headers.get('x-request-id') }
      return response.ok ? { ...common, answer: json } : { ...common, error: ofConnectError(json) }
    },
  }
}

function getOnly(name: string, transport: Transport): Way {
  return { ...overTransport(name, transport), readsOnly: true }
}

function overTransport(name: string, transport: Transport): Way {
  return {
    name,
    readsOnly: false,
    async ask({ method, request, unknownFields, headers, signal }) {
      const message = messageOf(method, request, unknownFields)
      try {
        const { message: answer, header } = await transport.unary(method as never, signal, undefined, headers, message)
        return { answer: jsonOf(method.output, answer), isRaw: false, requestId: header.get('x-request-id') }
      } catch (thrown) {
        const error = ConnectError.from(thrown)
        const details = error.details.map((detail) => {
          if (!('type' in detail)) throw new Error('the client made a detail itself', { cause: thrown })
          return { type: detail.type, value: detail.value }
        })
        return {
          error: describe({ code: codeToString(error.code), message: error.rawMessage, details }),
          isRaw: false,
          requestId: error.metadata.get('x-request-id'),
        }
      }
    },
  }
}

/** The client of grpc-js, which shares no code with the server except the codecs of protobuf-es. */
function grpcJs(url: string): { way: Way; close: () => void } {
  const client = new Client(url.replace('http://', ''), credentials.createInsecure())
  const ask = ({ method, request, unknownFields, headers, signal }: Ask): Promise<Outcome> => {
    const metadata = new Metadata()
    for (const [name, value] of Object.entries(headers)) metadata.set(name, value)
    const { promise, resolve, reject } = Promise.withResolvers<Outcome>()
    let requestId: string | null = null
    const call = client.makeUnaryRequest<Message, Message>(
      rpcPathOf(method),
      (message) => Buffer.from(toBinary(method.input, message)),
      (bytes) => fromBinary(method.output, bytes),
      messageOf(method, request, unknownFields),
      metadata,
      (error, answer) => {
        try {
          if (error !== null) return resolve(ofGrpcError(error, requestId))
          if (answer === undefined) throw new Error('neither an error nor an answer')
          resolve({ answer: jsonOf(method.output, answer), isRaw: false, requestId })
        } catch (mistake) {
          reject(mistake)
        }
      },
    )
    call.on('metadata', (header) => {
      requestId = header.get('x-request-id')[0]?.toString() ?? null
    })
    signal?.addEventListener('abort', () => call.cancel(), { once: true })
    return promise
  }
  return { way: { name: 'gRPC', readsOnly: false, ask }, close: () => client.close() }
}

function messageOf(method: DescMethod, request: JsonObject, unknownFields: Ask['unknownFields']): Message {
  const message = fromJson(method.input, request)
  if (unknownFields !== undefined) message.$unknown = [...unknownFields]
  return message
}

function jsonOf(desc: DescMessage, message: Message): JsonValue {
  return toJson(desc, message, { alwaysEmitImplicit: true })
}

interface RawDetail {
  readonly type: string
  readonly value: Uint8Array
}

function describe(error: { code: string; message: string; details: readonly RawDetail[] }): WireError {
  const find = (desc: DescMessage): JsonObject | undefined => {
    const detail = error.details.find(({ type }) => type === desc.typeName)
    return detail && (toJson(desc, fromBinary(desc, detail.value), { alwaysEmitImplicit: true }) as JsonObject)
  }
  return {
    code: error.code,
    message: error.message,
    info: find(ErrorInfoSchema) ?? null,
    violations: find(BadRequestSchema)?.['fieldViolations'] ?? [],
    route: find(RouteSchema) ?? null,
    details: error.details.map(({ type }) => type),
  }
}

/** Reads the body of an error of REST. */
export function ofHttpError(body: JsonObject): WireError {
  const details = body['details'] as ({ '@type': string } & JsonObject)[]
  const typed = details.map(({ '@type': url, ...fields }) => ({ type: url.split('/').at(-1) ?? '', fields }))
  const find = (desc: DescMessage) => typed.find(({ type }) => type === desc.typeName)?.fields
  return {
    code: body['code'] as string,
    message: body['message'] as string,
    info: find(ErrorInfoSchema) ?? null,
    violations: find(BadRequestSchema)?.['fieldViolations'] ?? [],
    route: find(RouteSchema) ?? null,
    details: typed.map(({ type }) => type),
  }
}

/** Reads the body of an error of Connect, whose `debug` must agree with its bytes. */
export function ofConnectError(body: JsonObject): WireError {
  const details = body['details'] as { type: string; value: string; debug: JsonObject }[]
  const described = describe({
    code: body['code'] as string,
    message: body['message'] as string,
    details: details.map(({ type, value }) => ({ type, value: Buffer.from(value, 'base64') })),
  })
  const info = details.find(({ type }) => type === ErrorInfoSchema.typeName)?.debug
  if (JSON.stringify(info) !== JSON.stringify(described.info)) throw new Error('debug and bytes of a detail differ')
  if (codeFromString(described.code) === undefined) throw new Error(`${described.code} is not a code of Connect`)
  return described
}

function ofGrpcError(error: ServiceError, requestId: string | null): Outcome {
  const code: number = error.code
  const [bytes] = error.metadata.get('grpc-status-details-bin')
  const status = bytes instanceof Buffer ? fromBinary(StatusSchema, bytes) : undefined
  const details = status?.details.map((any) => ({ type: any.typeUrl.split('/').at(-1) ?? '', value: any.value })) ?? []
  if (status !== undefined && (status.code !== code || status.message !== error.details)) {
    throw new Error(`the status in the details differs: ${status.code} ${status.message}`)
  }
  return {
    error: describe({ code: codeToString(code), message: error.details, details }),
    isRaw: false,
    requestId: requestId ?? error.metadata.get('x-request-id')[0]?.toString() ?? null,
  }
}
