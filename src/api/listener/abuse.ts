import { BlockList } from 'node:net'
import type { Reason } from '../../errors/reasons.ts'
import type { WaybillError } from '../../errors/waybill-error.ts'
import { createReadClientAddress } from '../http/client-address.ts'
import type { Allowance } from './connection-limits.ts'

/**
 * What an address may cost us for nothing, in units of about a tenth of a millisecond of a processor. Calls that are
 * answered are no abuse, however many: those have limits of their own.
 */
export interface AbuseLimits {
  /** Beyond it the first call that is broken off ends its connection. */
  readonly probation: Allowance
  /** Beyond it connections from there are closed before a byte of them is read. */
  readonly bar: Allowance
  /** How many addresses are remembered; beyond that the one whose last offence is longest ago is forgotten. */
  readonly maxAddresses: number
}

export const DEFAULT_ABUSE_LIMITS: AbuseLimits = {
  // What one connection may do to most servers of HTTP/2 before it is ended; here all connections of an address together.
  probation: { burst: 1_000, perSecond: 50 },
  // Half a second of one processor at once, a fortieth of it in the long run.
  bar: { burst: 5_000, perSecond: 250 },
  maxAddresses: 20_000,
}

/** What offences that are no calls cost, in units: what was measured for each, with the connection that it takes. */
export const offences = {
  /** A stream that was broken off before its answer was out. */
  reset: 1,
  /** A connection that ended without having said what it wants. */
  silence: 1,
  /** One more connection than its address may have. */
  excess: 1,
  /** A connection while the address is barred. */
  knocking: 1,
  /** A handshake of TLS that failed, which costs a signature. */
  handshake: 10,
  /** What is not HTTP. */
  garbage: 10,
  /** Control frames until the connection was ended for it. */
  flood: 100,
} as const

/** What refused calls and requests cost; those that are not here cost nothing, as they have a caller's key to pay for them. */
const refusals: Partial<Record<Reason, number>> = {
  MALFORMED_REQUEST: offences.garbage,
  INVALID_HOST: offences.garbage,
  HEADERS_TOO_LARGE: 20,
  TOO_MANY_HEADERS: 20,
  BODY_TOO_LARGE: 20,
  BODY_TOO_DEEP: 20,
  BODY_TOO_COMPLEX: 30,
  REQUEST_TOO_SLOW: 5,
}

/** Of a call without a good key from an address that is beyond its calls for the minute. */
const KEYLESS = 2

/** What an error that a request is refused with costs, in units. @param isKeyless - whether its address was counted, no key */
export function costOfRefusal({ reason }: WaybillError, isKeyless: boolean): number {
  return refusals[reason] ?? (reason === 'RATE_LIMITED' && isKeyless ? KEYLESS : 0)
}

/** Counts what clients cost for nothing, by the address at the other end of their connections. */
export interface AbuseCounter {
  readonly charge: (peer: string, units: number) => void
  /** A call was answered: it makes up for one that was broken off. */
  readonly makeUp: (peer: string) => void
  readonly isOnProbation: (peer: string) => boolean
  readonly isBarred: (peer: string) => boolean
}

interface Account {
  probation: number
  bar: number
  countedAtMs: number
}

/**
 * Makes the counter. Debts are paid by time alone, and grow to at most the burst: who goes on stays out, who stops is let in
 * again after as long as the burst takes to be earned.
 *
 * @param options.isManyClients - addresses that stand for many clients: nothing is counted against them
 * @param options.nowMs - a clock that never goes back
 * @param options.onBarred - hears of each address when it is barred
 */
export function createAbuseCounter(options: {
  readonly limits: AbuseLimits
  readonly isManyClients: (peer: string) => boolean
  readonly nowMs: () => number
  readonly onBarred: (address: string) => void
}): AbuseCounter {
  const { limits, nowMs } = options
  const readAddress = createReadClientAddress([])
  const accounts = new Map<string, Account>()

  function find(peer: string): Account | undefined {
    if (accounts.size === 0) return undefined
    const address = readAddress(peer, {})
    const account = accounts.get(address)
    if (account === undefined) return undefined
    const now = nowMs()
    const seconds = (now - account.countedAtMs) / 1000
    account.probation = Math.min(limits.probation.burst, account.probation + seconds * limits.probation.perSecond)
    account.bar = Math.min(limits.bar.burst, account.bar + seconds * limits.bar.perSecond)
    account.countedAtMs = now
    if (account.probation < limits.probation.burst || account.bar < limits.bar.burst) return account
    accounts.delete(address)
    return undefined
  }

  /** In the order of their last offences. */
  function remember(peer: string, account: Account): void {
    const address = readAddress(peer, {})
    accounts.delete(address)
    accounts.set(address, account)
    for (const oldest of accounts.keys()) {
      if (accounts.size <= limits.maxAddresses) break
      accounts.delete(oldest)
    }
  }

  return {
    charge(peer, units) {
      if (units === 0 || peer === '' || options.isManyClients(peer)) return
      const account = find(peer) ?? { probation: limits.probation.burst, bar: limits.bar.burst, countedAtMs: nowMs() }
      const wasBarred = account.bar < 0
      account.probation = Math.max(-limits.probation.burst, account.probation - units)
      account.bar = Math.max(-limits.bar.burst, account.bar - units)
      remember(peer, account)
      if (account.bar < 0 && !wasBarred && !isThisMachine(peer)) options.onBarred(readAddress(peer, {}))
    },
    makeUp(peer) {
      const account = find(peer)
      if (account === undefined) return
      account.probation = Math.min(limits.probation.burst, account.probation + 1)
      account.bar = Math.min(limits.bar.burst, account.bar + 1)
    },
    isOnProbation: (peer) => (find(peer)?.probation ?? 0) < 0,
    isBarred: (peer) => (find(peer)?.bar ?? 0) < 0 && !isThisMachine(peer),
  }
}

/**
 * Whether somebody on this machine calls, which is mostly a proxy that nobody has told of: to bar it would bar everybody.
 * Other addresses of the loopback network are told apart like any.
 */
function isThisMachine(peer: string): boolean {
  return peer === '127.0.0.1' || peer === '::1' || peer === '::ffff:127.0.0.1'
}

/** What node:net asks, before it makes a socket of a connection, whether to close it. */
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
