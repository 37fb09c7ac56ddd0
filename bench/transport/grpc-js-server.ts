import { randomUUID } from 'node:crypto'
import { type DescMethod, fromBinary, type Message, toBinary } from '@bufbuild/protobuf'
import { createContextValues } from '@connectrpc/connect'
import { Metadata, type MethodDefinition, Server, ServerCredentials, type ServiceError, status } from '@grpc/grpc-js'
import { callerKey } from '../../src/api/calls/call.ts'
import { grpcErrorTrailers } from '../../src/api/calls/error-mapping.ts'
import type { ServedMethod } from '../../src/api/calls/served-method.ts'
import { checkBinary } from '../../src/api/messages/message-codec.ts'
import { createValidate } from '../../src/api/messages/validation.ts'
import { WaybillError, waybillError } from '../../src/errors/waybill-error.ts'
import { authenticate, logger, services } from './calls.ts'
import { compileProtobufjsSerializer } from './protobufjs-serializer.ts'

/**
 * The same handlers on a server of grpc-js. Requests are small and are decoded by protobuf-es, whose messages the checks need; answers are
 * encoded by protobufjs, which users of grpc-js have and which is faster for a page of payments. In addition, everything that the service
 * does for every call: request id, one line of log, key and scope, the checks of the message, a deadline that cancels the work.
 */
export async function startGrpcJs(): Promise<number> {
  const server = new Server()
  for (const { methods } of services) {
    const unary = methods.filter(({ desc }) => desc.methodKind === 'unary')
    const definition = Object.fromEntries(unary.map((method) => [method.desc.localName, definitionOf(method.desc)]))
    const handlers = Object.fromEntries(unary.map((method) => [method.desc.localName, handlerOf(method)]))
    server.addService(definition, handlers)
  }
  return new Promise((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, port) => {
      if (error === null) resolve(port)
      else reject(error)
    })
  })
}

function definitionOf({ parent, name, input, output }: DescMethod): MethodDefinition<Message, object> {
  return {
    path: `/${parent.typeName}/${name}`,
    requestStream: false,
    responseStream: false,
    requestSerialize: (message) => Buffer.from(toBinary(input, message)),
    requestDeserialize(bytes) {
      checkBinary(input, bytes)
      return fromBinary(input, bytes)
    },
    responseSerialize: compileProtobufjsSerializer(output),
    responseDeserialize: (bytes) => fromBinary(output, bytes),
  }
}

interface UnaryCall {
  readonly request: Message
  readonly metadata: Metadata
  on(event: 'cancelled', listener: () => void): void
  getPeer(): string
  sendMetadata(metadata: Metadata): void
}

function handlerOf({ desc, path, scope, handler }: ServedMethod) {
  const validate = createValidate()

  async function answer(call: UnaryCall): Promise<object> {
    const controller = new AbortController()
    const { promise: ended, reject } = Promise.withResolvers<never>()
    ended.catch(() => {})
    const end = (error: Error) => {
      reject(error)
      controller.abort(error)
    }
    const timer = setTimeout(() => end(waybillError('DEADLINE_EXCEEDED', { timeoutMs: 30_000 })), 30_000)
    call.on('cancelled', () => end(waybillError('CALL_CANCELLED', {})))
    const run = async () => {
      const apiKey = (call.metadata.get('x-api-key')[0] as string | undefined) ?? null
      const account = (call.metadata.get('x-account')[0] as string | undefined) ?? null
      if (scope === 'open') throw new TypeError(path)
      const caller = await authenticate({ apiKey, account, address: () => call.getPeer() }, scope, () => {})
      validate(desc.input, call.request)
      const { keyId } = caller
      const values = createContextValues().set(callerKey, { account: caller.account, keyId })
      const requestHeader = { get: (name: string) => call.metadata.get(name)[0] ?? null }
      const context = { values, requestHeader, signal: controller.signal, timeoutMs: () => undefined }
      return (await handler(call.request, context as unknown as Parameters<typeof handler>[1])) as object
    }
    try {
      return await Promise.race([run(), ended])
    } finally {
      clearTimeout(timer)
    }
  }

  return async (call: UnaryCall, callback: (error: Partial<ServiceError> | null, value?: object) => void) => {
    const startMs = performance.now()
    const requestId = randomUUID()
    const header = new Metadata()
    header.set('x-request-id', requestId)
    call.sendMetadata(header)
    try {
      const value = await answer(call)
      const durationMs = Math.round((performance.now() - startMs) * 100) / 100
      logger.info({ requestId, method: path, protocol: 'grpc', code: 'ok', durationMs, account: 'bench' }, 'call')
      callback(null, value)
    } catch (error) {
      if (!(error instanceof WaybillError)) throw error
      const trailers = grpcErrorTrailers(error)
      callback({ code: Number(trailers['grpc-status'] ?? status.UNKNOWN), details: error.message })
    }
  }
}
