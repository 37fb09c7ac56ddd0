import { once } from 'node:events'
import { createServer, type RequestListener, type ServerOptions } from 'node:http'
import type { AddressInfo } from 'node:net'

export type LocalServer = Awaited<ReturnType<typeof serveLocally>>

/** Serves HTTP on a free port of 127.0.0.1, to programs of this machine. */
export async function serveLocally(listener: RequestListener, options: ServerOptions = {}) {
  const server = createServer(options, listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    /** Without a path. */
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    /** Closes open connections too, answered or not; resolves when all are closed. */
    stop: async (): Promise<void> => {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}
