import type { Logger } from '../../domain/logger.ts'
import { isWithinLag, type PrimaryHistory, type UsableReplica, withMoment } from './choose-replica.ts'
import type { Replica } from './replica.ts'
import type { PrimaryLook } from './wal-position.ts'

/** Follows the positions of the primary and its replicas. */
export interface ReplicaWatch {
  /** The replicas that may serve reads now. */
  readonly usable: () => UsableReplica<Replica>[]
  /** Looks at all servers, now and at intervals from then on. */
  readonly start: () => Promise<void>
  readonly stop: () => Promise<void>
}

export interface ReplicaWatchOptions {
  readonly replicas: readonly Replica[]
  readonly lookAtPrimary: () => Promise<PrimaryLook>
  readonly logger: Logger
  readonly monotonicMs: () => number
  readonly lookEveryMs: number
  readonly maxLagMs: number
}

export function watchReplicas(options: ReplicaWatchOptions): ReplicaWatch {
  const { replicas, lookAtPrimary, logger, monotonicMs, lookEveryMs, maxLagMs } = options
  /** Replicas of another database cluster. */
  const foreign = new Set<Replica>()
  let history: PrimaryHistory = []
  let timer: NodeJS.Timeout | undefined
  let looking: Promise<void> | undefined

  async function lookAtAll(): Promise<void> {
    const atMs = monotonicMs()
    const primary = await lookAtPrimary().catch(() => undefined)
    if (primary !== undefined) history = withMoment(history, { atMs, position: primary.position }, maxLagMs)
    await Promise.all(replicas.map((replica) => lookAtOne(replica, primary)))
  }

  async function lookAtOne(replica: Replica, primary: PrimaryLook | undefined): Promise<void> {
    const look = await replica.look().catch(() => undefined)
    if (look === undefined || primary === undefined) return
    if (look.cluster === primary.cluster) foreign.delete(replica)
    else if (!foreign.has(replica)) {
      foreign.add(replica)
      logger.error({ replica: replica.name }, 'the replica belongs to another database cluster and is not used')
    }
  }

  function scheduleLook(): void {
    timer = setTimeout(() => {
      looking = lookAtAll().finally(() => {
        if (timer !== undefined) scheduleLook()
      })
    }, lookEveryMs)
    timer.unref()
  }

  return {
    usable() {
      const sinceMs = monotonicMs() - maxLagMs
      return replicas.flatMap((replica) => {
        const replayed = foreign.has(replica) ? undefined : replica.replayed()
        return replayed !== undefined && isWithinLag(history, replayed, sinceMs) ? [{ replica, replayed }] : []
      })
    },
    async start() {
      await lookAtAll()
      scheduleLook()
    },
    async stop() {
      clearTimeout(timer)
      timer = undefined
      await looking
    },
  }
}
