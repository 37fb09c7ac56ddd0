import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Readable } from 'node:stream'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { CallContext } from '../src/protocol/call-context.ts'
import type { Listener } from '../src/protocol/listener.ts'
import { serveApi } from '../src/protocol/serve-api.ts'
import {
  authenticateGood,
  type EchoRequest,
  loadEchoService,
  recordingLogger,
  serveEcho,
} from './support/echo-service.ts'

const service = loadEchoService()

let listener: Listener
let reached: PromiseWithResolvers<CallContext>
let children: ChildProcess[]

beforeEach(async () => {
  reached = Promise.withResolvers()
  children = []
  const hang = (context: CallContext) => {
    reached.resolve(context)
    return new Promise<never>((_, reject) => {
      context.signal.addEventListener('abort', () => reject(context.signal.reason as Error))
    })
  }
  listener = await serveApi({
    host: '127.0.0.1',
    port: 0,
    services: [
      serveEcho(service, {
        echo: (_request, context) => hang(context),
        store: (_request, context) => hang(context),
        wait: (_request, context) => hang(context),
        async *count({ name }: EchoRequest, context: CallContext) {
          yield { name }
          await hang(context)
        },
      }),
    ],
    authenticate: authenticateGood,
    logger: recordingLogger().logger,
    ready: async () => true,
  })
})

afterEach(async () => {
  for (const child of children) child.kill('SIGKILL')
  await listener.stop({ graceMs: 0 })
})

/** Calls over HTTP/2 in a process of its own, which can be killed with no time to say goodbye. */
function callFromProcess(path: string, contentType: string, body: string): ChildProcess {
  const program = `
    const session = require('node:http2').connect('${listener.url}')
    const fields = { ':method': 'POST', ':path': '${path}', 'content-type': '${contentType}', 'x-api-key': 'good' }
    const stream = session.request(fields)
    stream.end(Buffer.from('${body}', 'base64'))
    stream.on('data', () => console.log('heard'))
  `
  const child = spawn(process.execPath, ['-e', program], { stdio: ['ignore', 'pipe', 'inherit'] })
  children.push(child)
  return child
}

const frameOfA = Buffer.from([0, 0, 0, 0, 3, 0x0a, 1, 0x61]).toString('base64')
const jsonOfA = Buffer.from('{"name":"a"}').toString('base64')

describe('a client over HTTP/2 that is killed', () => {
  it.each([
    ['a call of REST', '/v1/echo', 'application/json', jsonOfA, false],
    ['a call of Connect', '/tests.v1.EchoService/Store', 'application/json', jsonOfA, false],
    ['a call of gRPC', '/tests.v1.EchoService/Store', 'application/grpc', frameOfA, false],
    ['a stream', '/tests.v1.EchoService/Count', 'application/grpc', frameOfA, true],
  ])('ends %s and leaves no connection', async (_name, path, contentType, body, beginsToAnswer) => {
    const child = callFromProcess(path, contentType, body)
    const { signal } = await reached.promise
    if (beginsToAnswer) await once(child.stdout as Readable, 'data')
    const fired = once(signal, 'abort')
    child.kill('SIGKILL')
    await fired
    expect(signal.reason).toMatchObject({ reason: 'CALL_CANCELLED' })
    // It waits for every connection, for longer than this test may take.
    await listener.stop({ graceMs: 60_000 })
  })
})
