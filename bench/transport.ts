/**
 * Measures the CPU time that a call costs the server, for each protocol beside its yardstick. Every server is a process of its own; this
 * process is the client.
 *
 *   npm run bench:transport -- [--runs N] [--rounds N] [--calls N] [--warm-up CALLS] [--only NAMES] [--method NAME] [--profile SERVER]
 *
 * `--only rest,metrics.on` compares these two alone. Two processes of the same server differ by up to a tenth, for as long as they run: each
 * run has new ones, and a figure is the median of the runs.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { Agent, createServer, request as httpRequest } from 'node:http'
import type { AddressInfo } from 'node:net'
import { parseArgs } from 'node:util'
import { create, type DescMessage, type Message, toBinary } from '@bufbuild/protobuf'
import { Client, credentials, Metadata } from '@grpc/grpc-js'
import { PaymentSearchService, SearchPaymentsRequestSchema } from '../gen/payments/v1/payment_search_service_pb.js'
import { GetPaymentRoutesRequestSchema, RoutesService } from '../gen/payments/v1/routes_service_pb.js'
import { type Figure, median, report } from './report.ts'
import { API_KEY } from './transport/key.ts'

const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '1' },
    rounds: { type: 'string', default: '20' },
    calls: { type: 'string', default: '1000' },
    'warm-up': { type: 'string', default: '12000' },
    only: { type: 'string' },
    method: { type: 'string' },
    profile: { type: 'string' },
  },
})
const ROUNDS = Number(values.rounds)
const CALLS = Number(values.calls)
/**
 * V8 optimises during the first calls, for longer the more code there is: the first thousand calls cost four times as much as the twelfth
 * thousand. The figures are to be those of a server that has run for a minute.
 */
const WARM_UP_ROUNDS = Math.ceil(Number(values['warm-up']) / CALLS)
const AT_ONCE = 8
/** Each server rests while the others are called. V8 drops the compiled code of a process that rests, which one under load keeps. */
const KEEP_CODE = '--no-memory-reducer'

const wallet = '0x70997970c51812dc3a010c7d01b50e0d17dc79c8'
const paymentReference = '1122334455667788'
const query = 'currency=USDC&status=CONFIRMED&limit=50'

type Method = 'routes' | 'search'
/** Makes one call and checks the answer. */
type MakeCall = () => Promise<void>

interface Subject {
  readonly name: string
  readonly server: string
  readonly connect: (port: number) => Record<Method, MakeCall>
}

const allSubjects: readonly Subject[] = [
  { name: 'rest', server: 'waybill', connect: restCalls },
  { name: 'fastify', server: 'fastify', connect: restCalls },
  { name: 'connect', server: 'waybill', connect: connectCalls },
  { name: 'grpc', server: 'waybill', connect: grpcCalls },
  { name: 'grpc-js', server: 'grpc-js', connect: grpcCalls },
  { name: 'raw', server: 'raw', connect: restCalls },
  // With metrics, and with one call in a hundred traced.
  { name: 'metrics.on', server: 'waybill-observed', connect: restCalls },
]

const methods = (['routes', 'search'] as const).filter((name) => name === (values.method ?? name))
const only = values.only?.split(',')
const subjects = allSubjects.filter(({ name }) => only?.includes(name) ?? true)

const ratios = [
  { of: 'rest', to: 'fastify', atMost: { routes: 1, search: 1 } },
  { of: 'grpc', to: 'grpc-js', atMost: { routes: 0.8, search: 0.6 } },
  { of: 'connect', to: 'rest', atMost: { routes: 1.15, search: 1 } },
  { of: 'rest', to: 'raw', atMost: { routes: undefined, search: 2.5 } },
  { of: 'fastify', to: 'raw', atMost: { routes: undefined, search: undefined } },
  { of: 'metrics.on', to: 'rest', as: 'metrics.on/off', atMost: { routes: 1.05, search: 1.05 } },
] as const

/** Takes the traces, as a collector on the same machine does. */
const collector = createServer((request, response) => {
  request.resume().once('end', () => response.end())
}).listen(0, '127.0.0.1')
await once(collector, 'listening')
const collectorUrl = `http://127.0.0.1:${(collector.address() as AddressInfo).port}`

interface Running extends Subject {
  readonly child: ChildProcess
  readonly calls: Record<Method, MakeCall>
}

const runs: Figure[][] = []
while (runs.length < Number(values.runs)) runs.push(await runOnce())
await report('transport', mediansOf(runs))
process.exit()

async function runOnce(): Promise<Figure[]> {
  const running = await Promise.all(subjects.map(startSubject))
  try {
    return await measure(running)
  } finally {
    for (const { child } of running) child.disconnect()
  }
}

function mediansOf([first = [], ...others]: readonly Figure[][]): Figure[] {
  return first.map((figure, n) => {
    const all = [figure, ...others.flatMap((run) => run[n] ?? [])].map(({ value }) => value)
    if (others.length > 0) console.log(figure.name, all.map((value) => value.toFixed(3)).join(', '))
    return { ...figure, value: median(all) }
  })
}

async function startSubject(subject: Subject): Promise<Running> {
  const profile = values.profile === subject.name ? ['--cpu-prof', '--cpu-prof-dir=bench/out'] : []
  const execArgv = [KEEP_CODE, ...profile]
  const env = { ...process.env, OTEL_EXPORTER_OTLP_ENDPOINT: collectorUrl }
  const child = fork(new URL('./transport-server.ts', import.meta.url), [subject.server], { execArgv, env })
  const ended = once(child, 'exit').then(([code]) => {
    throw new Error(`the server of ${subject.name} ended with ${String(code)}`)
  })
  const [{ port }] = (await Promise.race([once(child, 'message'), ended])) as [{ port: number }]
  return { ...subject, child, calls: subject.connect(port) }
}

async function measure(running: readonly Running[]): Promise<Figure[]> {
  const micros = new Map<string, number[]>()
  for (let round = -WARM_UP_ROUNDS; round < ROUNDS; round++) {
    for (const method of methods) {
      // In another order each time, because the first one finds the machine in another state than the last.
      for (const subject of rotate(running, round + WARM_UP_ROUNDS)) {
        const cost = await cpuOf(subject.child, () => makeCalls(subject.calls[method]))
        if (round >= 0) push(micros, `${subject.name}.${method}`, cost / CALLS)
      }
    }
  }
  return methods.flatMap((method) => [
    ...ratios
      .filter(({ of, to }) => [of, to].every((name) => only?.includes(name) ?? true))
      .map(({ of, to, atMost: { [method]: atMost }, ...named }) => ({
        name: 'as' in named ? `${named.as}.${method}` : `${of}.${method}/${to}`,
        value: median(
          each(micros, `${of}.${method}`).map((cost, n) => cost / (each(micros, `${to}.${method}`)[n] ?? 0)),
        ),
        unit: 'ratio',
        ...(atMost !== undefined && { target: { atMost } }),
      })),
    ...subjects.map(({ name }) => ({
      name: `${name}.${method}`,
      value: median(each(micros, `${name}.${method}`)),
      unit: 'µs a call',
    })),
  ])
}

function rotate<T>(list: readonly T[], by: number): readonly T[] {
  const at = by % list.length
  return [...list.slice(at), ...list.slice(0, at)]
}

function push(lists: Map<string, number[]>, name: string, value: number): void {
  lists.set(name, [...each(lists, name), value])
}

function each(lists: ReadonlyMap<string, readonly number[]>, name: string): readonly number[] {
  return lists.get(name) ?? []
}

async function cpuOf(child: ChildProcess, work: () => Promise<void>): Promise<number> {
  const before = await askCpu(child)
  await work()
  return (await askCpu(child)) - before
}

async function askCpu(child: ChildProcess): Promise<number> {
  child.send('cpu')
  const [{ cpuMicros }] = (await once(child, 'message')) as [{ cpuMicros: number }]
  return cpuMicros
}

async function makeCalls(call: MakeCall): Promise<void> {
  let left = CALLS
  const caller = async () => {
    while (left-- > 0) await call()
  }
  await Promise.all(Array.from({ length: AT_ONCE }, caller))
}

function restCalls(port: number): Record<Method, MakeCall> {
  const call = httpCaller(port)
  return {
    routes: () => call('GET', `/v1/request/${paymentReference}/routes?wallet=${wallet}`),
    search: () => call('GET', `/payments?${query}`),
  }
}

function connectCalls(port: number): Record<Method, MakeCall> {
  const call = httpCaller(port)
  const headers = { 'content-type': 'application/json', 'connect-protocol-version': '1' }
  const routes = JSON.stringify({ paymentReference, wallet })
  const search = JSON.stringify({ currency: ['USDC'], status: ['CONFIRMED'], limit: 50 })
  return {
    routes: () => call('POST', '/payments.v1.RoutesService/GetPaymentRoutes', headers, routes),
    search: () => call('POST', '/payments.v1.PaymentSearchService/SearchPayments', headers, search),
  }
}

function httpCaller(port: number) {
  const agent = new Agent({ keepAlive: true, maxSockets: AT_ONCE })
  return async (method: string, path: string, headers: Record<string, string> = {}, body = '') => {
    const sent = httpRequest({
      agent,
      port,
      host: '127.0.0.1',
      method,
      path,
      headers: { 'x-api-key': API_KEY, ...(body !== '' && { 'content-length': body.length }), ...headers },
    }).end(body)
    const [response] = await once(sent, 'response')
    let bytes = 0
    response.on('data', (chunk: Buffer) => {
      bytes += chunk.length
    })
    await once(response, 'end')
    if (response.statusCode !== 200 || bytes < 500)
      throw new Error(`${method} ${path}: ${response.statusCode}, ${bytes} bytes`)
  }
}

function grpcCalls(port: number): Record<Method, MakeCall> {
  const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure())
  const metadata = new Metadata()
  metadata.set('x-api-key', API_KEY)
  const call = (path: string, request: Message, serialize: (message: Message) => Buffer) => () =>
    new Promise<void>((resolve, reject) => {
      client.makeUnaryRequest(
        path,
        serialize,
        // Decoding by the client is not measured.
        (bytes: Buffer) => bytes.length,
        request,
        metadata,
        (error, length = 0) => {
          if (error === null && length > 200) resolve()
          else reject(error ?? new Error(`${path}: ${length} bytes`))
        },
      )
    })
  const routes = create(GetPaymentRoutesRequestSchema, { paymentReference, wallet })
  const search = create(SearchPaymentsRequestSchema, { currency: ['USDC'], status: [3], limit: 50 })
  return {
    routes: call(`/${RoutesService.typeName}/GetPaymentRoutes`, routes, serializerOf(GetPaymentRoutesRequestSchema)),
    search: call(`/${PaymentSearchService.typeName}/SearchPayments`, search, serializerOf(SearchPaymentsRequestSchema)),
  }
}

function serializerOf(desc: DescMessage): (message: Message) => Buffer {
  return (message) => Buffer.from(toBinary(desc, message))
}
