import type { Socket } from 'node:net'
import { USUAL_SHARE } from '../../domain/account.ts'
import { createAlarms } from '../calls/alarms.ts'
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
  holder: string
  isSettled: boolean
  isClosed: boolean
  hasBegun: boolean
  requests: number
  close: () => void
}

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
  const lists = createLists(limits, terms)
  const open = new Map<string, HeldConnection>()
  return {
    /** The connection of a socket, also of the one within TLS; undefined when it is closed. */
    of: (socket: Pick<Socket, 'remoteAddress' | 'remotePort'>) => open.get(nameOf(socket)),
    /** Counts a connection until it is closed. @returns whether there is a place for it */
    accept(socket: Socket): boolean {
      const peer = socket.remoteAddress ?? ''
      const name = nameOf(socket)
      if (open.size >= limits.maxConnections && !lists.closeAny()) return false
      const isOfMany = terms.isManyClients(peer)
      const connection: Connection = {
        peer,
        isOfMany,
        standing: isOfMany ? 'secret' : 'keyless',
        holder: `address ${readAddress(peer, {})}`,
        isSettled: false,
        isClosed: false,
        hasBegun: false,
        requests: 0,
        close: () => socket.destroy(),
      }
      const settle = () => lists.change(connection, () => void (connection.isSettled = true))
      const callOff = setAlarm(FRESH_MS, settle)
      open.set(name, holdConnection(connection, lists.change))
      socket.once('close', () => {
        callOff()
        open.delete(name)
        lists.change(connection, () => void (connection.isClosed = true))
      })
      return true
    },
  }
}

function createLists({ maxConnections, maxConnectionsPerAddress }: ShareLimits, terms: ShareTerms) {
  const maxOfKey = placesOf(maxConnections, USUAL_SHARE)
  const maxOfAddress = maxConnectionsPerAddress ?? maxOfKey
  const maxKeyless = placesOf(maxConnections, 0.5)
  /** By holder; the one that has been idle the longest is the first. */
  const idle = new Map<string, Set<Connection>>()
  /** Those that may be closed for others: idle ones, and of the keyless ones all. */
  const closable: Readonly<Record<Standing, Set<Connection>>> = {
    keyless: new Set(),
    publishable: new Set(),
    secret: new Set(),
  }

  function leave(connection: Connection): void {
    closable[connection.standing].delete(connection)
    const ofHolder = idle.get(connection.holder)
    if (ofHolder?.delete(connection) === true && ofHolder.size === 0) idle.delete(connection.holder)
  }

  function join(connection: Connection): void {
    const { isSettled, isClosed, requests, standing, holder, isOfMany } = connection
    if (!isSettled || isClosed) return
    const isIdle = requests === 0
    if (isIdle || standing === 'keyless') closable[standing].add(connection)
    if (isIdle && !isOfMany) {
      const ofHolder = idle.get(holder) ?? new Set()
      idle.set(holder, ofHolder.add(connection))
      if (ofHolder.size > (standing === 'secret' ? maxOfKey : maxOfAddress)) closeFirst(ofHolder)
    }
    if (closable.keyless.size > maxKeyless) closeFirst(closable.keyless)
  }

  /** @returns whether there was one */
  function closeFirst(connections: ReadonlySet<Connection>): boolean {
    const [first] = connections
    if (first === undefined) return false
    leave(first)
    first.isClosed = true
    if (!first.hasBegun) terms.onSilentClosed(first.peer)
    first.close()
    return true
  }

  return {
    /** Closes an idle connection, a keyless one first. @returns whether there was one */
    closeAny: () => closeFirst(closable.keyless) || closeFirst(closable.publishable) || closeFirst(closable.secret),
    /** Changes a connection, and then has its holder and those without a key keep what they may. */
    change: (connection: Connection, apply: () => void): void => {
      leave(connection)
      apply()
      join(connection)
    },
  }
}

/** A connection, as its requests see it. */
function holdConnection(connection: Connection, change: ReturnType<typeof createLists>['change']) {
  return {
    /** A request has begun on it. */
    begin(): void {
      connection.hasBegun = true
      connection.requests += 1
      if (connection.requests === 1) change(connection, () => {})
    },
    /** A request is over. */
    end(): void {
      connection.requests -= 1
      if (connection.requests > 0) return
      change(connection, () => void (connection.isSettled = true))
    },
    /** Whether nobody has called with a key on it. */
    isKeyless: () => connection.standing === 'keyless',
    /** A request's caller is known. */
    holdFor({ standing, name }: Holder): void {
      // Who has called with a secret key once keeps it.
      const isSame = standing === connection.standing && (standing !== 'secret' || connection.holder === name)
      if (connection.isOfMany || isSame || (connection.standing === 'secret' && standing !== 'secret')) return
      change(connection, () => {
        connection.standing = standing
        if (standing === 'secret') connection.holder = name
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
