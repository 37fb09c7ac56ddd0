/** A service in a process of its own, on a chain behind a proxy, and what it exports: metrics, traces, a log. */
import { once } from 'node:events'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { serveLocally } from '../../demo/network/local-server.ts'
import { startTestChain, type TestChain } from '../support/chains/chain.ts'
import { createTestDatabase, urlOfDatabase } from '../support/data/database.ts'
import { runWaybill, startWaybill, type WaybillProcess } from '../support/process.ts'
import { makeTempFolder } from '../support/temp-folder.ts'

export interface ExportingService {
  readonly process: WaybillProcess
  readonly url: string
  readonly metricsUrl: string
  readonly key: string
  readonly databaseUrl: string
  readonly chain: TestChain
  /** Headers of the requests that the chain's node got. */
  readonly asked: readonly IncomingHttpHeaders[]
  /** The lines of its log. */
  log(): Record<string, unknown>[]
  stop(): Promise<void>
}

/** @param environment - beside database, chains and ports */
export async function startExporting(environment: Readonly<Record<string, string>>): Promise<ExportingService> {
  const [folder, database, chain] = await Promise.all([
    makeTempFolder('exporting'),
    createTestDatabase(),
    startTestChain({ chainId: 31_711 }),
  ])
  const asked: IncomingHttpHeaders[] = []
  const node = await serveLocally((request, response) => {
    asked.push(request.headers)
    void buffer(request).then(async (body) => {
      const answer = await fetch(chain.rpcUrl, {
        method: 'POST',
        body,
        headers: { 'content-type': 'application/json' },
      })
      response.writeHead(answer.status, { 'content-type': 'application/json' }).end(await answer.text())
    })
  })
  await mkdir(folder, { recursive: true })
  const file = join(folder, 'chains.json')
  const config = { ...chain.config({ name: 'BASE' }), rpcUrls: [{ url: node.url, traceparent: true }] }
  await writeFile(file, JSON.stringify({ chains: [config] }))
  const store = { DATABASE_URL: urlOfDatabase(database) }
  const scopes = 'routes:read,payments:read,requests:read,requests:write'
  const created = await runWaybill(['keys', 'create', '--account', 'a', '--scopes', scopes], store)
  const settings = { ...store, DATA_DIR: folder, CHAINS_FILE: file, PORT: '0', METRICS_PORT: '0', ...environment }
  const started = startWaybill(['serve'], settings)
  const [, url = ''] = await started.says(/Waybill on (http:\S+):/)
  const [, metricsUrl = ''] = (await started.says(/"url":"(http:[^"]+)","msg":"metrics are read here"/, 'stderr')) ?? []
  return {
    process: started,
    url,
    metricsUrl,
    key: created.stdout.trim(),
    databaseUrl: store.DATABASE_URL,
    chain,
    asked,
    log: () =>
      started
        .stderr()
        .split('\n')
        .flatMap((line) => (line.startsWith('{') ? [JSON.parse(line)] : [])),
    async stop() {
      started.kill('SIGTERM')
      await started.ended
      await Promise.all([node.stop(), chain.stop()])
      await Promise.all([database.drop(), rm(folder, { recursive: true, force: true })])
    },
  }
}

/** Starts what takes traces and metrics over OTLP. @returns its URL, and the bodies that it got of each */
export async function startOtlpReceiver() {
  const bodies: Buffer[] = []
  const metrics: Buffer[] = []
  const server = createServer((request, response) => {
    void buffer(request).then((body) => {
      const list = { '/v1/traces': bodies, '/v1/metrics': metrics }[request.url ?? '']
      const isExpected = list !== undefined && request.headers['content-type'] === 'application/x-protobuf'
      if (isExpected) list.push(body)
      response.writeHead(isExpected ? 200 : 400).end()
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    bodies,
    metrics,
    stop: async () => void server.close(),
  }
}
