/** What calls two processes without a pause while they are replaced: gRPC by grpc-js, and anything behind the nginx of the guide. */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { readFile, rm } from 'node:fs/promises'
import { Agent, type IncomingMessage, request } from 'node:http'
import { join, resolve } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout } from 'node:timers/promises'
import { create } from '@bufbuild/protobuf'
import { Client, credentials } from '@grpc/grpc-js'
import { PaymentSearchService } from '../../gen/payments/v1/payment_search_service_pb.js'
import { startNginx } from '../../tools/proxies/nginx.ts'
import { fromServiceError, grpcJsCall } from './clients/protocol-clients.ts'
import { findFreePort } from './data/free-port.ts'
import { makeTempFolder } from './temp-folder.ts'

const GUIDE = resolve(import.meta.dirname, '../../docs/guides/behind-a-proxy.md')

const method = PaymentSearchService.method.searchPayments

/** A client of grpc-js that shares its searches between the addresses of its target by itself. */
export function grpcCaller(target: string, key: string) {
  const client = new Client(target, credentials.createInsecure(), {
    'grpc.service_config': JSON.stringify({ loadBalancingConfig: [{ round_robin: {} }] }),
    'grpc.initial_reconnect_backoff_ms': 100,
    'grpc.max_reconnect_backoff_ms': 500,
  })
  const { path, serialize, deserialize, metadata, deadline } = grpcJsCall(method, { headers: { 'x-api-key': key } })
  const message = create(method.input, {})
  const call = () =>
    new Promise((done, fail) => {
      client.makeUnaryRequest(path, serialize, deserialize, message, metadata, deadline, (error, answer) => {
        if (error === null) done(answer)
        else fail(Object.assign(new Error(error.message), fromServiceError(error)))
      })
    })
  return { call, close: () => client.close() }
}

/** The addresses of ports as grpc-js takes several. */
export const addressesOf = (ports: readonly number[]) => `ipv4:${ports.map((port) => `127.0.0.1:${port}`).join(',')}`

/** A call that is refused at once is made again after this time, in milliseconds: else thousands a second fill the memory while nobody answers. */
const AFTER_FAILURE_MS = 50

/**
 * Calls again and again, several at a time, while work is done.
 *
 * @returns how many calls there were, and what failed
 */
export async function callMeanwhile(call: () => Promise<unknown>, work: () => Promise<unknown>, callers = 4) {
  const over = new AbortController()
  let calls = 0
  const failed: unknown[] = []
  const callOn = async () => {
    for (; !over.signal.aborted; calls++) {
      await call().catch((error: unknown) => {
        failed.push(error)
        return setTimeout(AFTER_FAILURE_MS)
      })
    }
  }
  const all = Array.from({ length: callers }, callOn)
  await work().finally(() => over.abort())
  await Promise.all(all)
  return { calls, failed }
}

/** Starts nginx as the guide sets it up, before processes at these ports. */
export async function startGuidedNginx(ports: readonly number[]) {
  const [http, grpc] = [await findFreePort(), await findFreePort()]
  const [, guided = ''] = /```nginx\n(.*?)```/s.exec(await readFile(GUIDE, 'utf8')) ?? []
  const [line = '', server = ''] = /^ +(server 127\.0\.0\.1:8080.*)$/m.exec(guided) ?? []
  const site = guided
    .replaceAll(line, ports.map((port) => server.replace('8080', `${port}`)).join('\n'))
    .replace('listen 80;', `listen 127.0.0.1:${http};`)
    .replace('listen 8081 ', `listen 127.0.0.1:${grpc} `)
  const folder = await makeTempFolder('guided-nginx')
  const nginx = await startNginx(folder, site, http)
  const agent = new Agent({ keepAlive: true })
  return {
    /** Where it takes gRPC. */
    grpc: `127.0.0.1:${grpc}`,
    /** Not by fetch, whose answers tests check against the description of the API: nginx adds headers of its own. @throws Error for another status than 200 */
    async ask(key: string, verb: string, path: string, body = ''): Promise<string> {
      const headers = { 'x-api-key': key, 'content-type': 'application/json', 'content-length': body.length }
      const asked = request({ port: http, host: '127.0.0.1', agent, method: verb, path, headers })
      asked.end(body)
      const [answer] = (await once(asked, 'response')) as [IncomingMessage]
      const said = await text(answer)
      if (answer.statusCode !== 200) throw new Error(`status ${answer.statusCode}: ${said}`)
      return said
    },
    /** What nginx has to say of calls that failed. */
    saysOf: (failed: readonly unknown[]) =>
      failed.length === 0 ? '' : linesBut(/Connection refused/, readFileSync(join(folder, 'error.log'), 'utf8')),
    async stop() {
      agent.destroy()
      await nginx.stop()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** The last lines of a text, without those of what is usual while a process is replaced. */
const linesBut = (usual: RegExp, all: string) =>
  all
    .split('\n')
    .filter((line) => !usual.test(line))
    .slice(-20)
    .join('\n')
