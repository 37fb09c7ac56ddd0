import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'

/** An HTTP server of a test's own, on a free port of loopback. */
export interface LoopbackServer {
  /** Without a path. */
  readonly url: string
  /** Ends it with all its connections, whatever is still to be answered. */
  readonly stop: () => Promise<void>
}

export async function listenOnLoopback(listener: RequestListener): Promise<LoopbackServer> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async stop() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
