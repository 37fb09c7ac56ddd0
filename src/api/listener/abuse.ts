import { BlockList } from 'node:net'
import type { Reason } from '../../errors/reasons.ts'
import type { WaybillError } from '../../errors/waybill-error.ts'
import { createReadClientAddress } from '../http/client-address.ts'

/** A token bucket: so many at once, and so many a second in the long run. */
export interface Allowance {
  readonly burst: number
  readonly perSecond: number
}

/** Makes what counts against an allowance. @param nowMs - a monotonic clock */
export function createAllowance({ burst, perSecond }: Allowance, nowMs: () => number) {
  let units = burst
  let countedAtMs = nowMs()
  const left = (): number => {
    const now = nowMs()
    units = Math.min(burst, units + ((now - countedAtMs) / 1000) * perSecond)
    countedAtMs = now
    return units
  }
  return {
    /** Below zero for a debt. */
    left,
    isWhole: () => left() === burst,
    /** Counts one. @returns whether it was allowed */
    take(): boolean {
      if (left() < 1) return false
      units -= 1
      return true
    },
    /** Charges more than is left, too. @param least - to which a debt may grow */
    charge(count: number, least: number): void {
      units = Math.max(least, left() - count)
    },
    giveBack(): void {
      units = Math.min(burst, left() + 1)
    },
  }
}

/**
 * The work that an address may cause without making calls, in units of about 0.1 ms of CPU time. Calls that are answered are not abuse,
 * however many they are: they have limits of their own.
 */
export interface AbuseLimits {
  /** Beyond it, the first cancelled call ends its connection. */
  readonly probation: Allowance
  /** Beyond it, new connections are closed before a byte is read. */
  readonly bar: Allowance
  /** How many addresses are remembered; beyond that, the one with the oldest last offence is evicted. */
  readonly maxAddresses: number
}

export const DEFAULT_ABUSE_LIMITS: AbuseLimits = {
  // What most HTTP/2 servers allow one connection before they end it; here it holds for all connections of an address together.
  probation: { burst: 1_000, perSecond: 50 },
  // Half a second of CPU time at once, and 2.5 percent of a CPU in the long run.
  bar: { burst: 5_000, perSecond: 250 },
  maxAddresses: 20_000,
}

/** The cost of offences that are not calls, in units, as measured, with the connection that each takes. */
export const offences = {
  /** A stream that was cancelled before its answer was sent. */
  reset: 1,
  /** An answer without a key that was cancelled after it had begun. */
  waste: 2,
  /** A connection that ended without a request. */
  silence: 1,
  /** A connection while the address is barred. */
  knocking: 1,
  /** A failed TLS handshake, which costs a signature. */
  handshake: 10,
  /** Bytes that are not HTTP. */
  garbage: 10,
  /** So many control frames that the connection was ended. */
  flood: 100,
} as const

/** The cost of refused requests. Other reasons cost nothing: a key has been checked by then, and is limited by itself. */
const refusals: Partial<Record<Reason, number>> = {
  MALFORMED_REQUEST: offences.garbage,
  INVALID_HOST: offences.garbage,
  HEADERS_TOO_LARGE: 20,
  BODY_TOO_LARGE: 20,
  BODY_TOO_COMPLEX: 30,
  REQUEST_TOO_SLOW: 5,
}

/** The cost of a call without a valid key from an address that has used up its calls of the minute. */
const KEYLESS = 2

/** The cost of an error with which a request is refused, in units. @param isKeyless - whether the call was counted for its address, not for a key */
export function costOfRefusal({ reason }: WaybillError, isKeyless: boolean): number {
  return refusals[reason] ?? (reason === 'RATE_LIMITED' && isKeyless ? KEYLESS : 0)
}

export type AbuseCounter = ReturnType<typeof createAbuseCounter>

interface Account {
  readonly probation: ReturnType<typeof createAllowance>
  readonly bar: ReturnType<typeof createAllowance>
  offendedAtMs: number
}

/** So many addresses at once have the whole burst of the bar; more share it among them, since their offences together slow others down. */
const MAX_WHOLE_BURSTS = 2
/** However many there are, each has this part of it. */
const LEAST_BURST = 1 / 20

/**
 * Makes what counts the work that clients cause without making calls, by the address of the peer. Debts shrink with time only, and grow to at most the burst. So an address stays barred while it goes on, and is let in
 * again at the latest when the time of one burst has passed since it stopped.
 *
 * @param options.isManyClients - whether many clients call from an address: it is never charged
 * @param options.nowMs - a monotonic clock
 * @param options.onBarred - called with each address when it is barred
 */
export function createAbuseCounter(options: {
  readonly limits: AbuseLimits
  readonly isManyClients: (peer: string) => boolean
  readonly nowMs: () => number
  readonly onBarred: (address: string) => void
}) {
  const { limits, nowMs } = options
  const readAddress = createReadClientAddress([])
  const accounts = new Map<string, Account>()

  function find(peer: string): Account | undefined {
    if (accounts.size === 0) return undefined
    const address = readAddress(peer, {})
    const account = accounts.get(address)
    if (account?.probation.isWhole() !== true || !account.bar.isWhole()) return account
    accounts.delete(address)
    return undefined
  }

  /** An address is barred below it. */
  function barAt(): number {
    const share = Math.max(LEAST_BURST, Math.min(1, MAX_WHOLE_BURSTS / accounts.size))
    return limits.bar.burst * (1 - share)
  }

  /** After that the largest debt has shrunk to nothing. */
  const recoveryMs = (2_000 * limits.bar.burst) / limits.bar.perSecond

  /** Keeps the accounts in the order of their last offences, and forgets those that owe nothing any more. */
  function remember(peer: string, account: Account): void {
    const address = readAddress(peer, {})
    account.offendedAtMs = nowMs()
    accounts.delete(address)
    accounts.set(address, account)
    for (const [oldest, { offendedAtMs }] of accounts) {
      if (accounts.size <= limits.maxAddresses && account.offendedAtMs - offendedAtMs <= recoveryMs) break
      accounts.delete(oldest)
    }
  }

  return {
    charge(peer: string, units: number): void {
      if (units === 0 || peer === '' || options.isManyClients(peer)) return
      const probation = createAllowance(limits.probation, nowMs)
      const account = find(peer) ?? { probation, bar: createAllowance(limits.bar, nowMs), offendedAtMs: 0 }
      const limit = barAt()
      const wasBarred = account.bar.left() < limit
      account.probation.charge(units, -limits.probation.burst)
      account.bar.charge(units, limit - limits.bar.burst)
      remember(peer, account)
      const isBarred = account.bar.left() < limit
      if (isBarred && !wasBarred && !isThisMachine(peer)) options.onBarred(readAddress(peer, {}))
    },
    /** A call was answered, which makes up for one cancelled call. */
    makeUp(peer: string): void {
      const account = find(peer)
      account?.probation.giveBack()
      account?.bar.giveBack()
    },
    isOnProbation: (peer: string) => (find(peer)?.probation.left() ?? 0) < 0,
    isBarred: (peer: string) => (find(peer)?.bar.left() ?? limits.bar.burst) < barAt() && !isThisMachine(peer),
  }
}

/**
 * Whether the peer is on this machine. That is mostly a proxy that is not configured as one, and barring it would bar all its clients. Other
 * addresses of the loopback network count like any address.
 */
function isThisMachine(peer: string): boolean {
  return peer === '127.0.0.1' || peer === '::1' || peer === '::ffff:127.0.0.1'
}

/** node:net asks it whether to close a connection, before it makes a socket of it. */
export class BarredPeers extends BlockList {
  readonly #isBarred: (peer: string) => boolean

  constructor(isBarred: (peer: string) => boolean) {
    super()
    this.#isBarred = isBarred
  }

  override check(address: unknown): boolean {
    return this.#isBarred(String(address))
  }
}
