import {
  create,
  type DescMessage,
  type DescMethod,
  type JsonValue,
  type Message,
  type MessageInitShape,
  toJson,
} from '@bufbuild/protobuf'
import { ConnectError, type Transport } from '@connectrpc/connect'
import {
  compressionBrotli,
  compressionGzip,
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
  Http2SessionManager,
} from '@connectrpc/connect-node'
import { Client, credentials, Metadata, type ServiceError } from '@grpc/grpc-js'
import { fromConnectError, fromServiceError, grpcJsCall, type Outcome } from './protocol-clients.ts'

export const streamProtocols = ['grpc-js', 'grpc', 'grpc-web', 'connect-json', 'connect-binary'] as const
export type StreamProtocol = (typeof streamProtocols)[number]

/** The result of a stream. */
export interface StreamOutcome {
  readonly messages: readonly JsonValue[]
  readonly header: Readonly<Record<string, string>>
  readonly trailer: Readonly<Record<string, string>>
  readonly error: Outcome | undefined
}

export interface StreamOptions {
  readonly headers?: Readonly<Record<string, string>>
  readonly timeoutMs?: number
  /** The compression of requests, and the one accepted for answers. grpc-js supports only gzip. */
  readonly compression?: 'gzip' | 'br'
  /** Called with each message; decides whether the call goes on. */
  readonly onMessage?: (message: JsonValue) => 'go on' | 'hang up'
}

export interface StreamClient {
  readonly call: (
    protocol: StreamProtocol,
    method: DescMethod,
    requests: Iterable<object> | AsyncIterable<object>,
    options?: StreamOptions,
  ) => Promise<StreamOutcome>
  readonly close: () => void
}

export function createStreamClient(url: string): StreamClient {
  const sessions: Http2SessionManager[] = []
  const clients: Client[] = []
  return {
    call(protocol, method, requests, options = {}) {
      if (protocol === 'grpc-js') {
        const client = new Client(new URL(url).host, credentials.createInsecure(), {
          ...(options.compression === 'gzip' && { 'grpc.default_compression_algorithm': 2 }),
        })
        clients.push(client)
        return callGrpcJs(client, method, requests, options)
      }
      const sessionManager = new Http2SessionManager(url)
      sessions.push(sessionManager)
      const transport = transportOf(protocol, { baseUrl: url, sessionManager, ...compressionOf(options) })
      return callTransport(transport, method, requests, options)
    },
    close() {
      for (const session of sessions) session.abort()
      for (const client of clients) client.close()
    },
  }
}

function compressionOf({ compression }: StreamOptions) {
  if (compression === undefined) return { acceptCompression: [] }
  const used = compression === 'br' ? compressionBrotli : compressionGzip
  return { sendCompression: used, acceptCompression: [used], compressMinBytes: 0 }
}

function transportOf(
  protocol: Exclude<StreamProtocol, 'grpc-js'>,
  common: { readonly baseUrl: string; readonly sessionManager: Http2SessionManager },
): Transport {
  const options = { httpVersion: '2' as const, ...common }
  switch (protocol) {
    case 'grpc':
      return createGrpcTransport(options)
    case 'grpc-web':
      return createGrpcWebTransport(options)
    case 'connect-json':
      return createConnectTransport({ ...options, jsonOptions: { alwaysEmitImplicit: true } })
    case 'connect-binary':
      return createConnectTransport({ ...options, useBinaryFormat: true })
  }
}

async function* each(requests: Iterable<object> | AsyncIterable<object>) {
  yield* requests
}

async function callTransport(
  transport: Transport,
  method: DescMethod,
  requests: Iterable<object> | AsyncIterable<object>,
  { headers, timeoutMs, onMessage }: StreamOptions,
): Promise<StreamOutcome> {
  const aborter = new AbortController()
  const messages: JsonValue[] = []
  let header: Headers | undefined
  let trailer: Headers | undefined
  let error: ConnectError | undefined
  try {
    const sent = each(requests) as never
    const response = await transport.stream(method as never, aborter.signal, timeoutMs, headers, sent)
    header = response.header
    trailer = response.trailer
    for await (const message of response.message) {
      const json = toJson(method.output, message as Message, { alwaysEmitImplicit: true })
      messages.push(json)
      if (onMessage?.(json) === 'hang up') aborter.abort()
    }
  } catch (thrown) {
    error = ConnectError.from(thrown)
  }
  return {
    messages,
    header: Object.fromEntries(header ?? error?.metadata ?? []),
    trailer: Object.fromEntries(error?.metadata ?? trailer ?? []),
    error: error && fromConnectError(error),
  }
}

async function callGrpcJs(
  client: Client,
  method: DescMethod,
  requests: Iterable<object> | AsyncIterable<object>,
  { headers, timeoutMs, onMessage }: StreamOptions,
): Promise<StreamOutcome> {
  const { path, serialize, deserialize, metadata, deadline } = grpcJsCall(method, { headers, timeoutMs })
  const call = client.makeBidiStreamRequest(path, serialize, deserialize, metadata, deadline)
  const messages: JsonValue[] = []
  let header = new Metadata()
  let failure: ServiceError | undefined
  call.on('metadata', (received: Metadata) => {
    header = received
  })
  call.on('error', (error: ServiceError) => {
    failure = error
  })
  call.on('data', (message: Message) => {
    const json = toJson(method.output, message, { alwaysEmitImplicit: true })
    messages.push(json)
    if (onMessage?.(json) === 'hang up') call.cancel()
  })
  const status = new Promise<{ readonly metadata: Metadata }>((resolve) => call.on('status', resolve))
  for await (const request of requests) call.write(create(method.input, request as MessageInitShape<DescMessage>))
  call.end()
  const trailer = (await status).metadata
  return {
    messages,
    header: textsOf(header),
    trailer: textsOf(trailer),
    error: failure && fromServiceError(failure),
  }
}

function textsOf(metadata: Metadata): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(metadata.getMap()).map(([name, value]) => [name, value.toString()]))
}
