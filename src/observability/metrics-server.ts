import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

interface MetricsServerOptions {
  readonly host: string
  /** 0 for any free port. */
  readonly port: number
  readonly contentType: string
  /** Writes the metrics. */
  readonly write: () => Promise<string>
}

/** Answers `GET /metrics` on a port of its own, since the public one is for callers. @throws Error of node:net if the port is not free */
export async function startMetricsServer({ host, port, contentType, write }: MetricsServerOptions) {
  const server = createServer((request, response) => {
    if (request.url?.split('?', 1)[0] !== '/metrics') return void response.writeHead(404).end()
    if (request.method !== 'GET') return void response.writeHead(405, { allow: 'GET' }).end()
    write().then(
      (text) => response.writeHead(200, { 'content-type': contentType }).end(text),
      () => response.writeHead(500).end(),
    )
  })
  // One scraper or two: whoever else comes is kept from holding descriptors.
  server.maxConnections = 16
  server.listen(port, host)
  await once(server, 'listening')
  const { family, address, port: number } = server.address() as AddressInfo
  return {
    url: `http://${family === 'IPv6' ? `[${address}]` : address}:${number}/metrics`,
    async stop(): Promise<void> {
      server.close()
      server.closeAllConnections()
    },
  }
}
