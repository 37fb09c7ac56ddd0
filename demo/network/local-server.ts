import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener, type ServerOptions } from 'node:http'
import type { AddressInfo } from 'node:net'
import { isLoopbackAuthority } from '../../src/domain/hosts/ip-network.ts'

export type LocalServer = Awaited<ReturnType<typeof serveLocally>>

/**
 * Serves HTTP on 127.0.0.1, to programs of this machine.
 *
 * @param preferredPort - taken if it is free; else, and by default, any free one
 */
export async function serveLocally(listener: RequestListener, options: ServerOptions = {}, preferredPort = 0) {
  const listen = async (port: number) => {
    const server = createServer(options, listener).listen(port, '127.0.0.1')
    await once(server, 'listening')
    return server
  }
  const server = await listen(preferredPort).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'EADDRINUSE') return listen(0)
    throw error
  })
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

/**
 * Decides who may call the demo's servers: programs on this machine and browser wallets, but no web page. Otherwise a page could call the
 * nodes, whose accounts are unlocked: by a form or a `fetch` to loopback, or by a domain of its own that resolves to loopback (DNS rebinding).
 */
/** Why a call is refused. */
export interface Refusal {
  status: number
  message: string
}

/** The origins of browser extensions, such as wallets; no page can have one. */
const EXTENSION = /^[a-z][a-z-]*-extension:\/\//

const JSON_TYPE = /^application\/json\s*(?:;|$)/i

/** @returns why the call is refused: its host, its origin, or a content type that a form can send; undefined when it is allowed */
export function refuseForeign({ method, headers }: IncomingMessage): Refusal | undefined {
  const { host = '', origin, 'content-type': type = '' } = headers
  if (!isLoopbackAuthority(host)) {
    return { status: 403, message: `the demo does not serve the host "${host}": call it as localhost or 127.0.0.1` }
  }
  if (origin !== undefined && !EXTENSION.test(origin)) {
    return {
      status: 403,
      message: `web pages of ${origin} may not call the demo; only programs and browser wallets may`,
    }
  }
  if (method === 'POST' && !JSON_TYPE.test(type)) {
    return { status: 415, message: `Content-Type is "${type}": send application/json` }
  }
  return undefined
}
