import { type AbuseLimits, DEFAULT_ABUSE_LIMITS } from './abuse.ts'

/** Bounds on what a connection may cost before and around its calls. */
export interface ConnectionLimits {
  /** Request line and headers together. */
  readonly maxHeaderBytes: number
  /** Of one HTTP/1.1 request; over HTTP/2 the bytes bound it. */
  readonly maxHeaders: number
  /** From the connection to its first bytes, and to the end of the headers. */
  readonly headersTimeoutMs: number
  /** From the first byte of a request to its last, and from an answer's first byte to its last where it was ready whole. */
  readonly requestTimeoutMs: number
  /** Without any byte in either direction, in the middle of a request as well; over HTTP/2 also without any call. */
  readonly idleTimeoutMs: number
  /** At once on one HTTP/2 connection. */
  readonly maxStreams: number
  /** At once, all together. */
  readonly maxConnections: number
  /** At once from one address, but for those that `isManyClients` excepts. */
  readonly maxConnectionsPerAddress: number
  /** Streams of one HTTP/2 connection that its client broke off before an answer had begun, less those that were answered whole. */
  readonly resets: Allowance
  /** PING and SETTINGS frames of one HTTP/2 connection. */
  readonly controlFrames: Allowance
  /** How long calls in flight may go on over an HTTP/2 connection that has broken these rules. */
  readonly drainTimeoutMs: number
  /** Of an address, all its connections together. */
  readonly abuse: AbuseLimits
}

/** So many at once, and so many a second in the long run. */
export interface Allowance {
  readonly burst: number
  readonly perSecond: number
}

export const DEFAULT_CONNECTION_LIMITS: ConnectionLimits = {
  maxHeaderBytes: 64 * 1024,
  maxHeaders: 500,
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 60_000,
  idleTimeoutMs: 120_000,
  maxStreams: 256,
  maxConnections: 8_000,
  maxConnectionsPerAddress: 1_000,
  // Clients with short deadlines break off many calls when we are slow, and proxies do so for many clients.
  resets: { burst: 100, perSecond: 20 },
  // gRPC clients send a PING now and then for each piece of data, to measure the line.
  controlFrames: { burst: 1_000, perSecond: 100 },
  // As long as a unary call may take.
  drainTimeoutMs: 30_000,
  abuse: DEFAULT_ABUSE_LIMITS,
}

/** Counts against an allowance. */
export interface AllowanceCounter {
  /** Counts one. @returns whether it was allowed */
  readonly take: () => boolean
  readonly giveBack: () => void
}

/** @param nowMs - of a clock that never goes back */
export function createAllowance({ burst, perSecond }: Allowance, nowMs: () => number): AllowanceCounter {
  let left = burst
  let countedAtMs = nowMs()
  return {
    take() {
      const now = nowMs()
      left = Math.min(burst, left + ((now - countedAtMs) / 1000) * perSecond)
      countedAtMs = now
      if (left < 1) return false
      left -= 1
      return true
    },
    giveBack() {
      left = Math.min(burst, left + 1)
    },
  }
}
