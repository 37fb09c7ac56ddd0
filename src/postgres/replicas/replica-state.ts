import type { ReplicaLook, WalPosition } from './wal-position.ts'

/** What is known about a replica, and how it changes. */
export interface ReplicaState {
  /** The server as of the last look; undefined while it does not answer. */
  readonly server: ReplicaLook | undefined
  /** Reads that failed since the last one that succeeded. */
  readonly failures: number
  /** The monotonic time until which it gets no reads. */
  readonly restsUntilMs: number
}

export const UNKNOWN_REPLICA: ReplicaState = {
  server: undefined,
  failures: 0,
  restsUntilMs: Number.NEGATIVE_INFINITY,
}

/** How long a replica gets no reads after the first failure, doubled with each further one, and at most. */
const FIRST_REST_MS = 1_000
const MAX_REST_MS = 30_000

/** What a look found: the replica came back, it is another server process than before, or nothing new. */
export type LookVerdict = 'found' | 'restarted' | 'same'

export function judgeLook({ server }: ReplicaState, look: ReplicaLook): LookVerdict {
  if (server === undefined) return 'found'
  return server.startedAt === look.startedAt ? 'same' : 'restarted'
}

export function afterLook(state: ReplicaState, look: ReplicaLook): ReplicaState {
  return { ...state, server: look }
}

export function afterLoss(state: ReplicaState): ReplicaState {
  return { ...state, server: undefined }
}

export function afterFailure(state: ReplicaState, nowMs: number): ReplicaState {
  const restMs = Math.min(FIRST_REST_MS * 2 ** state.failures, MAX_REST_MS)
  return { ...state, failures: state.failures + 1, restsUntilMs: nowMs + restMs }
}

export function afterSuccess(state: ReplicaState): ReplicaState {
  return { ...state, failures: 0 }
}

/** What the replica is known to have replayed; undefined while it gets no reads. */
export function replayedOf({ server, restsUntilMs }: ReplicaState, nowMs: number): WalPosition | undefined {
  return nowMs < restsUntilMs ? undefined : server?.position
}
