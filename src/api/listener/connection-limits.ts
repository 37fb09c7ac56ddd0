import { type AbuseLimits, type Allowance, DEFAULT_ABUSE_LIMITS } from './abuse.ts'

/** Limits of connections, apart from their calls. */
export interface ConnectionLimits {
  /** From opening the connection to its first bytes, and to the end of the headers. */
  readonly headersTimeoutMs: number
  /** From the first to the last byte of a request, and of a complete answer. */
  readonly requestTimeoutMs: number
  /** Without a byte in either direction, also within a request; over HTTP/2 also without a call. */
  readonly idleTimeoutMs: number
  /** Calls at once on one HTTP/2 connection. */
  readonly maxStreams: number
  /** Connections at once, all together. */
  readonly maxConnections: number
  /** Idle connections of one address without a secret key, unless `isManyClients` says that many clients call from it. Default: a tenth of all. */
  readonly maxConnectionsPerAddress?: number | undefined
  /** Streams of one HTTP/2 connection that its client cancelled before an answer began, less those that were answered completely. */
  readonly resets: Allowance
  /** PING and SETTINGS frames of one HTTP/2 connection. */
  readonly controlFrames: Allowance
  /** How long calls in flight may continue on an HTTP/2 connection that has exceeded these limits. */
  readonly drainTimeoutMs: number
  /** Limits of an address, over all its connections. */
  readonly abuse: AbuseLimits
}

export const DEFAULT_CONNECTION_LIMITS: ConnectionLimits = {
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 60_000,
  idleTimeoutMs: 120_000,
  maxStreams: 256,
  maxConnections: 8_000,
  // Clients with short deadlines cancel many calls when the service is slow, and proxies do so for many clients.
  resets: { burst: 100, perSecond: 20 },
  // gRPC clients send a PING with some data frames, to measure the bandwidth.
  controlFrames: { burst: 1_000, perSecond: 100 },
  // As long as a unary call may take.
  drainTimeoutMs: 30_000,
  abuse: DEFAULT_ABUSE_LIMITS,
}
