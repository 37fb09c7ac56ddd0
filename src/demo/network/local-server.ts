import { once } from 'node:events'
import { createServer, type RequestListener, type ServerOptions } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A server that programs of this machine can reach. */
export interface LocalServer {
  /** Without a path. */
  readonly url: string
  /** Closes open connections too, answered or not; resolves when all are closed. */
  readonly stop: () => Promise<void>
}

/** Serves HTTP on a free port of 127.0.0.1. */
export async function serveLocally(listener: RequestListener, options: ServerOptions = {}): Promise<LocalServer> {
  const server = createServer(options, listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async stop() {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}
