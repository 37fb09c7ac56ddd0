/**
 * Tries a demo behind nginx: once as docs/guides/behind-a-proxy.md sets it up, once with nginx's own defaults. nginx is the installed one, with
 * Debian's configuration but for the site. Where it is missing, this prints so and ends with 0.
 *
 *   npm run try:proxies
 */
import { readFile, rm } from 'node:fs/promises'
import { connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { createWaybill, WaybillCallError } from '../../clients/typescript/src/public.ts'
import { PaymentSearchService } from '../../gen/payments/v1/payment_search_service_pb.js'
import { createStreamClient } from '../../test/support/clients/stream-clients.ts'
import { startWaybill } from '../../test/support/process.ts'
import { makeTempFolder } from '../../test/support/temp-folder.ts'
import { root } from '../run-command.ts'
import { reasonWithoutNginx, startNginx } from './nginx.ts'

const GUIDE = 'docs/guides/behind-a-proxy.md'

/** What somebody writes who knows nothing of the guide. */
const BARE_SITE = 'server { listen 80; location / { proxy_pass http://127.0.0.1:8080; } }\n'

/** The longest time in which the first message of a stream arrives. */
const PROMPT_MS = 5_000

const key = { 'x-api-key': 'demo' }

interface Behind {
  readonly url: string
  /** Where HTTP/2 is spoken. */
  readonly grpcUrl: string
  /** Ends the connections to the service once so many more bytes have come. */
  readonly cutAfter: (bytes: number) => void
}

/** What is tried, and undefined where it holds, else what was seen. */
type Check = readonly [name: string, run: (behind: Behind) => Promise<string | undefined>]

/** @returns the exit code */
async function tryProxies(): Promise<number> {
  const folder = await makeTempFolder('try-proxies')
  const environment = { DATA_DIR: join(folder, 'data'), PORT: '0', LOG_LEVEL: 'warn', TRUSTED_PROXIES: '127.0.0.1' }
  const demo = startWaybill(['serve'], environment)
  let failed = 0
  const report = (site: string, name: string, seen: string | undefined) => {
    console.log(`${seen === undefined ? 'ok    ' : 'failed'}  ${site}: ${name}${seen === undefined ? '' : `: ${seen}`}`)
    if (seen !== undefined) failed++
  }
  try {
    await demo.says(/Ctrl-C/)
    const { baseUrl } = JSON.parse(await readFile(join(folder, 'data/demo.json'), 'utf8')) as { baseUrl: string }
    const relay = await startRelay(Number(new URL(baseUrl).port))
    const [, guided = ''] = /```nginx\n(.*?)```/s.exec(await readFile(join(root, GUIDE), 'utf8')) ?? []
    const sites = [
      ['as the guide says', guided, guidedChecks],
      ["with nginx's defaults", BARE_SITE, bareChecks],
    ] as const
    for (const [name, site, checks] of sites) {
      const [http, grpc] = [await freePort(), await freePort()]
      const text = site.replaceAll('8080', `${relay.port}`).replace('listen 80;', `listen 127.0.0.1:${http};`)
      const own = await makeTempFolder('try-proxies-nginx')
      const nginx = await startNginx(own, text.replace('listen 8081 ', `listen 127.0.0.1:${grpc} `), http)
      const behind = { url: `http://127.0.0.1:${http}`, grpcUrl: `http://127.0.0.1:${grpc}`, cutAfter: relay.cutAfter }
      try {
        for (const [what, run] of checks) report(name, what, await run(behind).catch(String))
      } finally {
        await nginx.stop()
        await rm(own, { recursive: true })
      }
    }
    relay.close()
  } finally {
    demo.kill('SIGTERM')
    await demo.ended
    await rm(folder, { recursive: true })
  }
  return failed === 0 ? 0 : 1
}

/** Stands between nginx and the service, and can end a connection as a service does that ends in the middle of an answer. */
async function startRelay(servicePort: number) {
  let left = Number.POSITIVE_INFINITY
  const open = new Set<Socket>()
  const server = createServer((near) => {
    const far = connect({ port: servicePort, host: '127.0.0.1' })
    for (const socket of [near, far]) {
      open.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => {
        open.delete(socket)
        near.destroy()
        far.destroy()
      })
    }
    near.pipe(far)
    far.on('data', (chunk) => {
      near.write(chunk.subarray(0, left))
      left -= chunk.length
      // As a process that ends: what it has sent arrives, then the connection ends properly.
      if (left <= 0) near.end(() => near.destroy())
    })
  })
  const port = await new Promise<number>((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve((server.address() as { port: number }).port))
  })
  return {
    port,
    cutAfter: (bytes: number) => {
      left = bytes
    },
    close() {
      server.close()
      for (const socket of open) socket.destroy()
    },
  }
}

async function freePort(): Promise<number> {
  const server = createServer()
  const port = await new Promise<number>((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve((server.address() as { port: number }).port))
  })
  await new Promise((resolve) => server.close(resolve))
  return port
}

const WATCH = '/payments.v1.PaymentSearchService/WatchPayments'

/** A watch of something that never comes: its first message is a heartbeat. */
function quiet(
  name: string,
  path: string,
  headers: Readonly<Record<string, string>>,
  body?: Uint8Array<ArrayBuffer>,
): Check {
  return [
    `the first message of a quiet stream over ${name} arrives at once`,
    async ({ url }) => {
      const given = body === undefined ? {} : { method: 'POST', body }
      const startMs = performance.now()
      const signal = AbortSignal.timeout(20_000)
      const answer = await fetch(url + path, { ...given, headers: { ...key, ...headers }, signal })
      const reader = answer.body?.getReader()
      const first = await reader?.read()
      const tookMs = performance.now() - startMs
      await reader?.cancel()
      if (answer.status !== 200 || first?.value === undefined) return `status ${answer.status}`
      return tookMs <= PROMPT_MS ? undefined : `after ${Math.round(tookMs)} ms`
    },
  ]
}

function envelope(text: string | Uint8Array): Uint8Array<ArrayBuffer> {
  const message = Buffer.from(text)
  const bytes = Buffer.alloc(5 + message.length)
  bytes.writeUInt32BE(message.length, 1)
  message.copy(bytes, 5)
  return bytes
}

const quietStreams: readonly Check[] = [
  quiet('JSON lines', '/v1/payments:watch?q=nothing', {}),
  quiet('server-sent events', '/v1/payments:watch?q=nothing', { accept: 'text/event-stream' }),
  quiet('Connect', WATCH, { 'content-type': 'application/connect+json' }, envelope('{"q":"nothing"}')),
  quiet('gRPC-Web', WATCH, { 'content-type': 'application/grpc-web+json' }, envelope('{"q":"nothing"}')),
]

const longest = Array.from({ length: 100 }, (_, at) => `${at}`.padEnd(240, 'x'))

const longUrl: Check = [
  'a URL with 100 references of 240 characters is served',
  async ({ url }) => {
    const query = new URLSearchParams(longest.map((reference) => ['reference', reference]))
    const { status } = await fetch(`${url}/payments?${query}`, { headers: key })
    return status === 200 ? undefined : `status ${status}`
  },
]

const longBody: Check = [
  'the same search as a body is served',
  async ({ url }) => {
    const path = '/payments.v1.PaymentSearchService/SearchPayments'
    const headers = { ...key, 'content-type': 'application/json' }
    const body = JSON.stringify({ reference: longest })
    const { status } = await fetch(url + path, { method: 'POST', headers, body })
    return status === 200 ? undefined : `status ${status}`
  },
]

const clientOf = (baseUrl: string) => createWaybill({ baseUrl, apiKey: 'demo', retries: 0 })

const wholeExport: Check = [
  'a whole export is whole',
  async ({ url, cutAfter }) => {
    cutAfter(Number.POSITIVE_INFINITY)
    let bytes = 0
    for await (const piece of clientOf(url).exportCsv()) bytes += piece.length
    let payments = 0
    for await (const message of clientOf(url).exportPayments({})) payments += message.payments.length
    return bytes > 100_000 && payments > 100 ? undefined : `${bytes} bytes, ${payments} payments`
  },
]

const CUT_AFTER = 20_000

const cutForClient: Check = [
  'the published client sees that an export is cut',
  async ({ url, cutAfter }) => {
    const read = [
      async () => {
        for await (const _ of clientOf(url).exportCsv()) continue
      },
      async () => {
        for await (const _ of clientOf(url).exportPayments({})) continue
      },
    ]
    for (const [nth, each] of read.entries()) {
      cutAfter(CUT_AFTER)
      const outcome = await each().then(
        () => 'whole',
        (error: unknown) => error,
      )
      cutAfter(Number.POSITIVE_INFINITY)
      if (!(outcome instanceof WaybillCallError)) return `export ${nth + 1}: ${String(outcome)}`
    }
    return undefined
  },
]

/** Reads a file as any program does that knows HTTP alone. @returns its text, or why HTTP says that it is not whole */
async function readFileOver({ url, cutAfter }: Behind, format: string): Promise<{ text: string } | { error: string }> {
  cutAfter(CUT_AFTER)
  try {
    const headers = { ...key, 'accept-encoding': 'identity' }
    const answer = await fetch(`${url}/v1/payments:export?format=${format}`, { headers })
    return { text: await answer.text() }
  } catch (error) {
    return { error: String(error) }
  } finally {
    cutAfter(Number.POSITIVE_INFINITY)
  }
}

const cutIsVisible: Check = [
  'HTTP itself says that an export is cut',
  async (behind) => {
    for (const format of ['csv', 'ndjson']) {
      const read = await readFileOver(behind, format)
      if ('text' in read) return `${format}: whole, with ${read.text.length} characters`
    }
    return undefined
  },
]

const markIsMissing: Check = [
  'an export that is cut has no empty line at its end, though HTTP says that it is whole',
  async (behind) => {
    for (const [format, mark] of [
      ['csv', '\r\n\r\n'],
      ['ndjson', '\n\n'],
    ] as const) {
      const read = await readFileOver(behind, format)
      if ('error' in read) return `${format}: HTTP says so: ${read.error}`
      if (read.text.endsWith(mark)) return `${format}: it has`
    }
    return undefined
  },
]

/** Calls a method over gRPC, with the client of grpc-js. */
async function callGrpc(
  { grpcUrl }: Behind,
  method: (typeof PaymentSearchService)['methods'][number],
  request: object,
) {
  const client = createStreamClient(grpcUrl)
  try {
    const startMs = performance.now()
    const outcome = await client.call('grpc-js', method, [request], { headers: key, timeoutMs: PROMPT_MS })
    return { ...outcome, tookMs: performance.now() - startMs }
  } finally {
    client.close()
  }
}

const grpcChecks: readonly Check[] = [
  [
    'gRPC: an export is whole',
    async (behind) => {
      const { messages, error } = await callGrpc(behind, PaymentSearchService.method.exportPayments, {})
      return error === undefined && messages.length > 5
        ? undefined
        : `${messages.length} messages, ${JSON.stringify(error)}`
    },
  ],
  [
    'gRPC: a quiet watch gives its first message at once',
    async (behind) => {
      const { messages } = await callGrpc(behind, PaymentSearchService.method.watchPayments, { q: 'nothing' })
      return messages.length > 0 ? undefined : 'no message in 5 s'
    },
  ],
  [
    'gRPC: the longest error arrives with its reason',
    async (behind) => {
      const network = longest.map((text) => text.slice(0, 64))
      const { error } = await callGrpc(behind, PaymentSearchService.method.exportPayments, { network })
      return error !== undefined && 'reason' in error && error.reason === 'UNKNOWN_NETWORK'
        ? undefined
        : JSON.stringify(error)
    },
  ],
]

const guidedChecks: readonly Check[] = [
  ...quietStreams,
  longUrl,
  longBody,
  wholeExport,
  cutForClient,
  cutIsVisible,
  ...grpcChecks,
]
const bareChecks: readonly Check[] = [...quietStreams, longBody, wholeExport, cutForClient, markIsMissing]

const reason = await reasonWithoutNginx()
if (reason === undefined) process.exitCode = await tryProxies()
else console.log(`try:proxies: skipped, since ${reason}`)
