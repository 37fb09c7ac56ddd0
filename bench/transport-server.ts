/** One server of bench:transport, in a process of its own: sends its port, and on request its CPU time. */
import { createServer } from 'node:http'
import { serveApi } from '../src/api/serve-api.ts'
import type { Telemetry } from '../src/domain/telemetry/telemetry.ts'
import { createHttpPost } from '../src/nodes/http-post.ts'
import { loadTelemetry } from '../src/observability/load-telemetry.ts'
import { page, routes } from './transport/answers.ts'
import { authenticate, logger, services } from './transport/calls.ts'
import { answerToJson, pageToJson, startFastify } from './transport/fastify-server.ts'
import { startGrpcJs } from './transport/grpc-js-server.ts'

const OBSERVED = { host: '127.0.0.1', metricsPort: 0, traces: { ratio: 0.01, isParentBased: true } }

const servers: Record<string, () => Promise<number>> = {
  waybill: () => startWaybill({}),
  'waybill-observed': async () => startWaybill((await loadTelemetry(OBSERVED, logger)).telemetry),
  fastify: startFastify,
  'grpc-js': startGrpcJs,
  raw: startRaw,
}

const start = servers[process.argv[2] ?? '']
if (start === undefined || process.send === undefined) throw new Error('only bench:transport starts this file')
const post = createHttpPost(process.env.OTEL_EXPORTER_OTLP_ENDPOINT ?? '', { maxBytes: 1_000, takesGzip: false })
process.send({ port: await start() })
setInterval(askNode, 500)
process.on('message', () => {
  const { user, system } = process.cpuUsage()
  process.send?.({ cpuMicros: user + system })
})
process.on('disconnect', () => process.exit())

/**
 * A process that follows chains asks their nodes over HTTP all the time. V8 compiles what node:http's servers and clients share for both then,
 * which makes a small call a tenth dearer; else whatever sends the first request, such as the export of traces, would seem to cost that.
 */
function askNode(): void {
  post('{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","params":[]}', AbortSignal.timeout(1_000)).catch(() => {})
}

async function startWaybill(telemetry: Telemetry): Promise<number> {
  const listener = await serveApi({
    host: '127.0.0.1',
    port: 0,
    services,
    authenticate,
    logger,
    telemetry,
    ready: async () => true,
    volatileFields: ['confirmations'],
  })
  return Number(new URL(listener.url).port)
}

/** The lower bound: no checks and no log; writes the same bytes as the other servers, from values in memory. */
async function startRaw(): Promise<number> {
  const plain = (answer: object) => JSON.parse(JSON.stringify(answer))
  const [plainPage, plainRoutes] = [plain(pageToJson(page)), plain(answerToJson(routes))]
  const server = createServer((request, response) => {
    const body = JSON.stringify(request.url?.startsWith('/payments') ? plainPage : plainRoutes)
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }).end(body)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return (server.address() as { port: number }).port
}
