import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import type { TestWorker } from '../../support/data/citus-cluster.ts'

/** Stands before a worker, so that a test can lose the worker. */
export interface Cut {
  /** Where the coordinator finds it. */
  readonly address: TestWorker
  /** Ends all connections and refuses new ones. */
  cut(): void
  mend(): void
  stop(): Promise<void>
}

export async function startTcpProxy(worker: TestWorker): Promise<Cut> {
  const sockets = new Set<Socket>()
  const server = createServer((client) => {
    const upstream = connect(worker.port, worker.host)
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => {
        sockets.delete(socket)
        client.destroy()
        upstream.destroy()
      })
    }
    client.pipe(upstream).pipe(client)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = { host: '127.0.0.1', port: (server.address() as AddressInfo).port }
  const dropAll = () => {
    for (const socket of sockets) socket.destroy()
  }
  return {
    address,
    cut() {
      server.close()
      dropAll()
    },
    mend() {
      server.listen(address)
    },
    stop() {
      dropAll()
      return new Promise((resolve) => void server.close(() => resolve()))
    },
  }
}
