/** What a server says about itself. */
export interface ServerState {
  readonly isReplica: boolean
  /** How much of the primary's log it has replayed, or as the primary written to disk, in bytes. It only grows. */
  readonly position: bigint
  /** The system identifier: a primary and its replicas have the same. */
  readonly cluster: string
  /** When the server process was started: tells it from another one that answers at the same address later. */
  readonly startedAt: string
}

/** What the primary said at recent moments of this process. Tells how old a replica's data are at most, without comparing clocks of two machines. */
export type PrimaryHistory = readonly PrimaryMoment[]

export interface PrimaryMoment extends Pick<ServerState, 'position' | 'cluster'> {
  /** Monotonic time, from before the primary was asked. */
  readonly atMs: number
}

/** Why a replica gets no reads. */
export type ReplicaFault =
  | 'it does not answer'
  | 'it is not a replica'
  | 'it belongs to another database cluster'
  | 'it is not known to be within the lag allowed'

/**
 * Why a replica gets no reads; undefined: it may have them. It has to have replayed everything that the primary had at some moment since `sinceMs`.
 *
 * @param state - what it said when it was last asked; undefined where it did not answer
 */
export function faultOf(
  state: ServerState | undefined,
  history: PrimaryHistory,
  sinceMs: number,
): ReplicaFault | undefined {
  if (state === undefined) return 'it does not answer'
  if (!state.isReplica) return 'it is not a replica'
  const recent = history.filter(({ atMs }) => atMs >= sinceMs)
  if (recent.some(({ cluster }) => cluster !== state.cluster)) return 'it belongs to another database cluster'
  if (recent.some(({ position }) => position <= state.position)) return undefined
  return 'it is not known to be within the lag allowed'
}
