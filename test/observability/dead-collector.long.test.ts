import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createTestDatabase, type TestDatabase, urlOfDatabase } from '../support/data/database.ts'
import { startWaybill } from '../support/process.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database.drop())

async function startCollector(answer: RequestListener) {
  const server = createServer(answer).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

function startSending(endpoint: string) {
  return startWaybill(['serve'], {
    DATABASE_URL: urlOfDatabase(database),
    CHAINS_FILE: 'none',
    PORT: '0',
    OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
    OTEL_METRIC_EXPORT_INTERVAL: '1000',
  })
}

it.each(['closed', 'hanging'])('a stop is not held up by a collector that is %s', async (state) => {
  const { server, url } = await startCollector(() => {})
  if (state === 'closed') server.close()
  const service = startSending(url)
  const [, port = ''] = await service.says(/Waybill on (http:\S+):/)
  // A trace that is to be sent.
  await (await fetch(`${port}/payments`)).text()
  const sentAtMs = performance.now()
  service.kill('SIGTERM')
  const { code, stderr } = await service.ended
  server.close()
  server.closeAllConnections()
  expect([code, stderr]).toEqual([0, expect.stringContaining('"msg":"stopped"')])
  expect(performance.now() - sentAtMs).toBeLessThan(6_000)
})

it('ends a start that fails with its exit code, though the collector hangs', async () => {
  const { server, url } = await startCollector(() => {})
  const taken = new URL(url).port
  const { code, stderr } = await startWaybill(['serve'], {
    DATABASE_URL: urlOfDatabase(database),
    CHAINS_FILE: 'none',
    PORT: taken,
    OTEL_EXPORTER_OTLP_ENDPOINT: url,
  }).ended
  server.close()
  server.closeAllConnections()
  expect([code, stderr]).toEqual([1, expect.stringContaining(`"reason":"port ${taken} of 127.0.0.1 is in use`)])
})

it('tells once of each signal that its exports fail, and once that they work again', async () => {
  let status = 400
  let asked = 0
  const { server, url } = await startCollector((request, response) => {
    asked += 1
    request.resume().on('end', () => response.writeHead(status).end())
  })
  const service = startSending(url)
  const [, port = ''] = await service.says(/Waybill on (http:\S+):/)
  const call = async () => (await fetch(`${port}/payments`)).text()
  await call()
  await service.says(/"signal":"traces","reason":"Bad Request","msg":"exports over OTLP fail"/, 'stderr')
  await service.says(/"signal":"metrics","reason":"Bad Request","msg":"exports over OTLP fail"/, 'stderr')
  await expect.poll(() => asked, { timeout: 10_000 }).toBeGreaterThan(3)
  status = 200
  await call()
  await service.says(/"signal":"traces","msg":"exports over OTLP work again"/, 'stderr')
  await service.says(/"signal":"metrics","msg":"exports over OTLP work again"/, 'stderr')
  service.kill('SIGTERM')
  const { code, stderr } = await service.ended
  server.close()
  expect([code, stderr.match(/exports over OTLP/g)?.length]).toEqual([0, 4])
})
