import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** Stands between a client and a server, and can stop passing anything on while all its sockets stay open, as a broken path of a network does. */
export interface SilentProxy {
  readonly host: string
  readonly port: number
  /** Keeps what either side sends. */
  silence(): void
  /** Keeps what the server sends from the first place on where the bytes occur. */
  silenceFrom(bytes: Buffer): void
  /** Passes on what it has kept, and everything from then on. */
  resume(): void
  /** Open connections of clients. */
  connections(): number
  /** How often a client has connected. */
  opened(): number
  stop(): Promise<void>
}

export async function startSilentProxy(target: { host: string; port: number }): Promise<SilentProxy> {
  const upstreamOf = () =>
    target.host.startsWith('/') ? connect(`${target.host}/.s.PGSQL.${target.port}`) : connect(target.port, target.host)
  const sockets = new Set<Socket>()
  const clients = new Set<Socket>()
  const kept: (() => void)[] = []
  let isSilent = false
  let opened = 0
  let until: Buffer | undefined

  const pass = (deliver: () => void) => {
    if (isSilent) kept.push(deliver)
    else deliver()
  }
  const link = (from: Socket, to: Socket, isServer: boolean) => {
    sockets.add(from)
    from.on('data', (chunk) => {
      const at = isServer && until !== undefined ? chunk.indexOf(until) : -1
      if (at < 0) return pass(() => to.write(chunk))
      to.write(chunk.subarray(0, at))
      until = undefined
      isSilent = true
      pass(() => to.write(chunk.subarray(at)))
    })
    from.on('end', () => pass(() => to.end()))
    from.on('error', () => pass(() => to.destroy()))
    from.on('close', () => {
      sockets.delete(from)
      clients.delete(from)
      pass(() => to.destroy())
    })
  }
  const server = createServer({ allowHalfOpen: true }, (client) => {
    const upstream = upstreamOf()
    clients.add(client)
    opened += 1
    link(client, upstream, false)
    link(upstream, client, true)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    host: '127.0.0.1',
    port: (server.address() as AddressInfo).port,
    silence() {
      isSilent = true
    },
    silenceFrom(bytes) {
      until = bytes
    },
    resume() {
      isSilent = false
      until = undefined
      for (const deliver of kept.splice(0)) deliver()
    },
    connections: () => clients.size,
    opened: () => opened,
    async stop() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}
