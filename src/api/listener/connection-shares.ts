import type { Socket } from 'node:net'
import { USUAL_SHARE } from '../../domain/account.ts'
import { createAlarms } from '../calls/alarms.ts'
import { createRoster } from '../calls/roster.ts'
import { type Holder, placesOf, type Standing } from '../calls/shares.ts'
import { createReadClientAddress } from '../http/client-address.ts'
import type { ConnectionLimits } from './connection-limits.ts'

export type HeldConnection = ReturnType<typeof holdConnection>

export type ConnectionShares = ReturnType<typeof shareConnections>

/** A new connection has so long to show who uses it, in milliseconds. Until then it is neither counted for its address nor closed for others. */
const FRESH_MS = 1_000

interface Connection {
  readonly peer: string
  /** A proxy's connection serves many clients, so it belongs to none. */
  readonly isOfMany: boolean
  standing: Standing
  /** The key, or the address of a client without a secret key. */
  holder: Holding
  /** Whether it has shown who uses it, or has had the time to. */
  isSettled: boolean
  isClosed: boolean
  hasBegun: boolean
  requests: number
  /** Leaves the rosters in which it is. */
  leave: () => void
  close: () => void
}

/** What one key or address holds. */
interface Holding {
  readonly name: string
  connections: number
  /** The one that has been idle the longest is the first. */
  readonly idle: Roster
}

type Roster = ReturnType<typeof createRoster<Connection>>

type ShareLimits = Pick<ConnectionLimits, 'maxConnections' | 'maxConnectionsPerAddress'>

interface ShareTerms {
  /** Whether many clients call from an address, such as a proxy's. */
  readonly isManyClients: (peer: string) => boolean
  /** Called with the peer of a connection that was closed for others before it made a request. */
  readonly onSilentClosed: (peer: string) => void
}

/**
 * Shares out the connections. A holder keeps a tenth of them idle, a secret key or else an address; those without any key keep half of all
 * together. Beyond that the one that has been idle the longest is closed, as HTTP allows, so nobody is refused for it. When all are taken, a new
 * connection takes the place of an idle one, keyless ones first; it is refused only if none is idle.
 */
export function shareConnections(limits: ShareLimits, terms: ShareTerms) {
  const readAddress = createReadClientAddress([])
  const setAlarm = createAlarms()
  const open = new Map<string, HeldConnection>()
  const connections = createConnections(limits, terms)
  return {
    /** The connection of a socket, also of the one within TLS; undefined when it is closed. */
    of: (socket: Pick<Socket, 'remoteAddress' | 'remotePort'>) => open.get(nameOf(socket)),
    /** Counts a connection until it is closed. @returns whether there is a place for it */
    accept(socket: Socket): boolean {
      const peer = socket.remoteAddress ?? ''
      const name = nameOf(socket)
      if (open.size >= limits.maxConnections && !connections.closeAny()) return false
      const isOfMany = terms.isManyClients(peer)
      const connection = connections.open({
        peer,
        isOfMany,
        standing: isOfMany ? 'secret' : 'keyless',
        holder: `address ${readAddress(peer, {})}`,
        close: () => socket.destroy(),
      })
      const settle = () => connections.change(connection, () => void (connection.isSettled = true))
      const callOff = setAlarm(FRESH_MS, settle)
      open.set(name, holdConnection(connection, connections))
      socket.once('close', () => {
        callOff()
        open.delete(name)
        connections.close(connection)
      })
      return true
    },
  }
}

function createConnections({ maxConnections, maxConnectionsPerAddress }: ShareLimits, terms: ShareTerms) {
  const maxOfKey = placesOf(maxConnections, USUAL_SHARE)
  const maxOfAddress = maxConnectionsPerAddress ?? maxOfKey
  const maxKeyless = placesOf(maxConnections, 0.5)
  const holdings = new Map<string, Holding>()
  /** Those that may be closed for others: idle ones, and of the keyless ones all. */
  const closable: Readonly<Record<Standing, Roster>> = {
    keyless: createRoster(),
    publishable: createRoster(),
    secret: createRoster(),
  }

  function hold(name: string): Holding {
    const holding = holdings.get(name) ?? { name, connections: 0, idle: createRoster<Connection>() }
    holdings.set(name, holding)
    holding.connections += 1
    return holding
  }

  function letGo(holding: Holding): void {
    holding.connections -= 1
    if (holding.connections === 0) holdings.delete(holding.name)
  }

  function remove(connection: Connection): void {
    if (connection.isClosed) return
    connection.leave()
    connection.isClosed = true
    letGo(connection.holder)
  }

  /** @returns whether there was one */
  function closeFirst(connections: Roster): boolean {
    const first = connections.first()
    if (first === undefined) return false
    remove(first)
    if (!first.hasBegun) terms.onSilentClosed(first.peer)
    first.close()
    return true
  }

  function join(connection: Connection): void {
    const { isSettled, requests, standing, holder, isOfMany } = connection
    if (!isSettled) return
    const isIdle = requests === 0
    const leaveClosable = isIdle || standing === 'keyless' ? closable[standing].join(connection) : nothing
    const leaveIdle = isIdle && !isOfMany ? holder.idle.join(connection) : nothing
    connection.leave = () => {
      leaveClosable()
      leaveIdle()
    }
    if (holder.idle.size() > (standing === 'secret' ? maxOfKey : maxOfAddress)) closeFirst(holder.idle)
    if (closable.keyless.size() > maxKeyless) closeFirst(closable.keyless)
  }

  return {
    /** Closes an idle connection, a keyless one first. @returns whether there was one */
    closeAny: () => closeFirst(closable.keyless) || closeFirst(closable.publishable) || closeFirst(closable.secret),
    open(
      terms: Pick<Connection, 'peer' | 'isOfMany' | 'standing' | 'close'> & { readonly holder: string },
    ): Connection {
      const fresh = { isSettled: false, isClosed: false, hasBegun: false, requests: 0, leave: nothing }
      return { ...terms, ...fresh, holder: hold(terms.holder) }
    },
    close: remove,
    /** Changes a connection, and then has its holder and those without a key keep what they may. */
    change(connection: Connection, apply: () => void): void {
      if (connection.isClosed) return apply()
      connection.leave()
      connection.leave = nothing
      apply()
      join(connection)
    },
    /** Has a connection held by another key or address. */
    handOver(connection: Connection, name: string): void {
      if (connection.isClosed) return
      letGo(connection.holder)
      connection.holder = hold(name)
    },
  }
}

function nothing(): void {}

/** A connection, as its requests see it. */
function holdConnection(connection: Connection, connections: ReturnType<typeof createConnections>) {
  return {
    /** A request has begun on it. */
    begin(): void {
      connection.hasBegun = true
      connections.change(connection, () => void (connection.requests += 1))
    },
    /** A request is over. */
    end(): void {
      connections.change(connection, () => {
        connection.requests -= 1
        if (connection.requests === 0) connection.isSettled = true
      })
    },
    /** Whether nobody has called with a key on it. */
    isKeyless: () => connection.standing === 'keyless',
    /** A request's caller is known. */
    holdFor({ standing, name }: Holder): void {
      // Who has called with a secret key once keeps it.
      const isSame = standing === connection.standing && (standing !== 'secret' || connection.holder.name === name)
      if (connection.isOfMany || isSame || (connection.standing === 'secret' && standing !== 'secret')) return
      connections.change(connection, () => {
        connection.standing = standing
        if (standing === 'secret') connections.handOver(connection, name)
      })
    },
    /** Sets how the connection is closed when it has to go; by default its socket is destroyed. */
    closeBy(close: () => void): void {
      connection.close = close
    },
  }
}

function nameOf({ remoteAddress = '', remotePort = 0 }: Pick<Socket, 'remoteAddress' | 'remotePort'>): string {
  return `${remoteAddress} ${remotePort}`
}
