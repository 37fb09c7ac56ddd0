import { WaybillError } from '../../errors/waybill-error.ts'
import type { WalPosition } from './wal-position.ts'

/** The decisions about replicas, without I/O: which one serves a read, and what follows when it fails. */

/** Where the primary stood at recent moments. Tells how old a replica's data are at most, without comparing clocks of two machines. */
export type PrimaryHistory = readonly PrimaryMoment[]

interface PrimaryMoment {
  /** Monotonic time of this process. */
  readonly atMs: number
  readonly position: WalPosition
}

/** The history with one more moment, without those older than the lag allowed. */
export function withMoment(history: PrimaryHistory, moment: PrimaryMoment, maxLagMs: number): PrimaryHistory {
  return [...history.filter(({ atMs }) => atMs >= moment.atMs - maxLagMs), moment]
}

/** Whether the replica has replayed everything that the primary had at some moment since `sinceMs`. */
export function isWithinLag(history: PrimaryHistory, replayed: WalPosition, sinceMs: number): boolean {
  return history.some(({ atMs, position }) => atMs >= sinceMs && position <= replayed)
}

/** A replica that may serve reads. */
export interface UsableReplica<R> {
  readonly replica: R
  /** What it has replayed, as of the last look. */
  readonly replayed: WalPosition
}

/**
 * Which server a read goes to:
 *
 * - `replica`: this one has replayed what the account has seen
 * - `look`: none is known to be far enough, but looks are up to half a second old; look at this one, and use it if it has caught up
 * - `primary`: no replica may serve reads
 */
export type ServerChoice<R> =
  | { readonly kind: 'replica'; readonly replica: R }
  | { readonly kind: 'look'; readonly replica: R }
  | { readonly kind: 'primary' }

/**
 * Chooses the server of a read. Replicas take turns.
 *
 * @param needed - the position that the account has seen
 * @param turn - grows by one with each read
 */
export function chooseServer<R>(
  usable: readonly UsableReplica<R>[],
  { needed, turn }: { readonly needed: WalPosition; readonly turn: number },
): ServerChoice<R> {
  const from = turn % usable.length
  const inTurn = [...usable.slice(from), ...usable.slice(0, from)]
  const [first] = inTurn
  if (first === undefined) return { kind: 'primary' }
  const ready = inTurn.find(({ replayed }) => replayed >= needed)
  return ready === undefined ? { kind: 'look', replica: first.replica } : { kind: 'replica', replica: ready.replica }
}

/**
 * What follows an error of work on a replica:
 *
 * - `cancelled`: the caller has left
 * - `refused`: the work refused the request, as it would on the primary
 * - `ask primary`: the replica or the way to it is to blame
 */
export type ErrorVerdict = 'cancelled' | 'refused' | 'ask primary'

export function judgeReplicaError(error: unknown, signal: AbortSignal | undefined): ErrorVerdict {
  if (signal?.aborted) return 'cancelled'
  return error instanceof WaybillError ? 'refused' : 'ask primary'
}
