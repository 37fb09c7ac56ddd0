import type { Socket } from 'node:net'
import { createReadClientAddress } from '../http/client-address.ts'
import type { ConnectionLimits } from './connection-limits.ts'

/** Why a connection is one too many. */
export type Excess = 'all' | 'address'

/**
 * Makes a counter of connections, all together and by address.
 *
 * @param isManyClients - whether many clients call from an address, such as a proxy's; it has no limit of its own
 * @returns counts a connection until it is closed, and tells which limit it exceeds; undefined for none
 */
export function countConnections(
  { maxConnections, maxConnectionsPerAddress }: ConnectionLimits,
  isManyClients: (address: string) => boolean,
): (socket: Socket) => Excess | undefined {
  const readAddress = createReadClientAddress([])
  const byAddress = new Map<string, number>()
  let all = 0
  return (socket) => {
    const peer = socket.remoteAddress ?? ''
    const address = readAddress(peer, {})
    const ofAddress = (byAddress.get(address) ?? 0) + 1
    all += 1
    byAddress.set(address, ofAddress)
    socket.once('close', () => {
      all -= 1
      const left = (byAddress.get(address) ?? 1) - 1
      if (left === 0) byAddress.delete(address)
      else byAddress.set(address, left)
    })
    if (all > maxConnections) return 'all'
    return ofAddress > maxConnectionsPerAddress && !isManyClients(peer) ? 'address' : undefined
  }
}
