import {
  create,
  createRegistry,
  type DescMessage,
  type DescMethod,
  type DescService,
  fromBinary,
  type JsonValue,
  type Message,
  type MessageInitShape,
  toBinary,
  toJson,
} from '@bufbuild/protobuf'
import { type Any, anyUnpack } from '@bufbuild/protobuf/wkt'
import { Code, ConnectError, type Transport } from '@connectrpc/connect'
import { codeToString } from '@connectrpc/connect/protocol-connect'
import { createConnectTransport, createGrpcWebTransport, Http2SessionManager } from '@connectrpc/connect-node'
import { Client, credentials, Metadata, type ServiceError } from '@grpc/grpc-js'
import { BadRequestSchema, type ErrorInfo, ErrorInfoSchema } from '../../../gen/google/rpc/error_details_pb.js'
import { StatusSchema } from '../../../gen/google/rpc/status_pb.js'

export const protocols = ['rest', 'connect-json', 'connect-binary', 'grpc-web', 'grpc'] as const
export type ClientProtocol = (typeof protocols)[number]

/** The result of a call, the same for every protocol. */
export type Outcome =
  | { readonly answer: JsonValue }
  | {
      readonly code: string
      readonly message: string
      readonly reason: string
      readonly metadata: Readonly<Record<string, string>>
      readonly violations: readonly { readonly field: string; readonly reason: string; readonly description: string }[]
    }

export interface ProtocolClient {
  readonly protocol: ClientProtocol
  /** Calls a unary method. REST sends the request as a JSON body. */
  readonly call: (method: DescMethod, request: object, options?: CallOptions) => Promise<Outcome>
  readonly close: () => void
}

export interface CallOptions {
  readonly headers?: Readonly<Record<string, string>> | undefined
  readonly timeoutMs?: number | undefined
  readonly signal?: AbortSignal
}

/**
 * Makes a client of each protocol.
 *
 * @param restPaths - the paths of routes with `body: "*"`, by local name of the method
 */
export function createProtocolClients(
  url: string,
  restPaths: Readonly<Record<string, string>>,
): readonly ProtocolClient[] {
  const sessions: Http2SessionManager[] = []
  const h2 = () => {
    const sessionManager = new Http2SessionManager(url)
    sessions.push(sessionManager)
    return { httpVersion: '2', baseUrl: url, sessionManager } as const
  }
  const jsonOptions = { alwaysEmitImplicit: true }
  const transports: readonly [ClientProtocol, Transport][] = [
    ['connect-json', createConnectTransport({ httpVersion: '1.1', baseUrl: url, jsonOptions })],
    ['connect-binary', createConnectTransport({ ...h2(), useBinaryFormat: true })],
    ['grpc-web', createGrpcWebTransport({ httpVersion: '1.1', baseUrl: url })],
  ]
  const close = () => {
    for (const session of sessions) session.abort()
  }
  return [
    restClient(url, restPaths),
    ...transports.map(([protocol, transport]) => transportClient(protocol, transport, close)),
    grpcClient(url),
  ]
}

function restClient(url: string, paths: Readonly<Record<string, string>>): ProtocolClient {
  return {
    protocol: 'rest',
    async call(method, request, { headers = {}, signal } = {}) {
      const path = paths[method.localName]
      if (path === undefined) throw new Error(`${method.name} has no path`)
      const body = JSON.stringify(toJson(method.input, create(method.input, request as MessageInitShape<DescMessage>)))
      const answer = await fetch(url + path, {
        method: 'POST',
        body,
        headers: { 'content-type': 'application/json', ...headers },
        ...(signal && { signal }),
      })
      return readRestAnswer(answer)
    },
    close() {},
  }
}

/** Reads an answer of REST. */
export async function readRestAnswer(answer: Response): Promise<Outcome> {
  const json = (await answer.json()) as { code: string; message: string; details: Record<string, JsonValue>[] }
  if (answer.ok) return { answer: json as unknown as JsonValue }
  const detail = (name: string) =>
    json.details.find((each) => each['@type'] === `type.googleapis.com/google.rpc.${name}`)
  const info = detail('ErrorInfo') as unknown as ErrorInfo
  return {
    code: json.code,
    message: json.message,
    reason: info.reason,
    metadata: info.metadata,
    violations: (detail('BadRequest')?.fieldViolations ?? []) as never,
  }
}

function transportClient(protocol: ClientProtocol, transport: Transport, close: () => void): ProtocolClient {
  return {
    protocol,
    async call(method, request, { headers, timeoutMs, signal } = {}) {
      try {
        const response = await transport.unary(method as never, signal, timeoutMs, headers, request as never)
        return { answer: answerOf(method, response.message) }
      } catch (error) {
        return fromConnectError(ConnectError.from(error))
      }
    },
    close,
  }
}

/** Reads an error that a client of Connect threw. */
export function fromConnectError(error: ConnectError): Outcome {
  const [info] = error.findDetails(ErrorInfoSchema)
  const [bad] = error.findDetails(BadRequestSchema)
  return outcomeOf(error.code, error.rawMessage, info, bad?.fieldViolations)
}

function grpcClient(url: string): ProtocolClient {
  const client = new Client(new URL(url).host, credentials.createInsecure())
  return {
    protocol: 'grpc',
    call(method, request, options = {}) {
      const { promise, resolve } = Promise.withResolvers<Outcome>()
      const { path, serialize, deserialize, metadata, deadline } = grpcJsCall(method, options)
      const message = create(method.input, request as MessageInitShape<DescMessage>)
      const call = client.makeUnaryRequest(
        path,
        serialize,
        deserialize,
        message,
        metadata,
        deadline,
        (error, answer) => {
          if (error !== null) resolve(fromServiceError(error))
          else if (answer !== undefined) resolve({ answer: answerOf(method, answer) })
        },
      )
      options.signal?.addEventListener('abort', () => call.cancel())
      return promise
    },
    close: () => client.close(),
  }
}

/** The arguments of grpc-js for a call of any kind. */
export function grpcJsCall(method: DescMethod, { headers = {}, timeoutMs }: CallOptions) {
  const metadata = new Metadata()
  for (const [name, value] of Object.entries(headers)) metadata.set(name, value)
  return {
    path: `/${method.parent.typeName}/${method.name}`,
    serialize: (message: Message) => Buffer.from(toBinary(method.input, message)),
    deserialize: (bytes: Buffer) => fromBinary(method.output, bytes),
    metadata,
    deadline: timeoutMs === undefined ? {} : { deadline: Date.now() + timeoutMs },
  }
}

const detailRegistry = createRegistry(ErrorInfoSchema, BadRequestSchema)

export function fromServiceError(error: ServiceError): Outcome {
  const [bytes] = error.metadata.get('grpc-status-details-bin')
  const details: readonly Any[] = bytes === undefined ? [] : fromBinary(StatusSchema, bytes as Buffer).details
  const unpacked = details.map((detail) => anyUnpack(detail, detailRegistry))
  const info = unpacked.find((each) => each?.$typeName === 'google.rpc.ErrorInfo') as ErrorInfo | undefined
  const bad = unpacked.find((each) => each?.$typeName === 'google.rpc.BadRequest') as
    | { fieldViolations: [] }
    | undefined
  return outcomeOf(error.code as number, error.details, info, bad?.fieldViolations)
}

function outcomeOf(
  code: Code,
  message: string,
  info: ErrorInfo | undefined,
  violations: readonly object[] = [],
): Outcome {
  return {
    code: codeToString(code),
    message,
    reason: info?.reason ?? '',
    metadata: { ...info?.metadata },
    violations: violations.map((each) => {
      const { field, reason, description } = each as { field: string; reason: string; description: string }
      return { field, description, reason }
    }),
  }
}

function answerOf(method: DescMethod, message: Message): JsonValue {
  return toJson(method.output, message, { alwaysEmitImplicit: true })
}

/** A service's method by local name. */
export function findMethod(service: DescService, localName: string): DescMethod {
  const method = service.methods.find((each) => each.localName === localName)
  if (method === undefined) throw new Error(`${service.typeName} has no method ${localName}`)
  return method
}
