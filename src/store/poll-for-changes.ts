import { chunksOf } from '../domain/collections.ts'
import type { Logger } from '../domain/logger.ts'
import { untilAborted } from '../domain/within.ts'

export interface PollOptions<Asked, Change> {
  /** Pause between two polls, and so the latency of changes, apart from the time to read them. */
  readonly pollMs: number
  readonly logger: Logger
  /** What is read together: all at once, or the accounts one by one, so that one on a lost server does not hold up the others. */
  readonly groupOf: (asked: Asked) => number
  /**
   * Reads what those of a group wait for.
   *
   * @returns tells the change of each; undefined where nothing has changed. It throws for one who waits in vain
   */
  readonly read: (asking: readonly Asked[]) => Promise<(asked: Asked) => Change | undefined>
}

/** How long polls may fail before those who wait get the error. */
const PATIENCE_MS = 15_000

/** A pool has eight connections by default. */
const READS_AT_ONCE = 3

interface Waiter<Asked, Change> {
  readonly asked: Asked
  readonly resolve: (change: Change) => void
  readonly reject: (error: unknown) => void
}

/**
 * Lets any number of callers wait for changes, with one poll of the database for all of them, and none while nobody waits. The function that it
 * returns waits for a change, but no longer than `timeoutMs`, after which it resolves with undefined. It throws the signal's reason when that fires,
 * and the database's error when polls have failed for {@link PATIENCE_MS}.
 */
export function createPoll<Asked, Change>(options: PollOptions<Asked, Change>) {
  const { pollMs, logger, groupOf, read } = options
  const waiters = new Set<Waiter<Asked, Change>>()
  const failingSinceMs = new Map<number, number>()
  let isPolling = false

  async function pollWhileAnyoneWaits(): Promise<void> {
    if (isPolling) return
    isPolling = true
    while (waiters.size > 0) {
      await new Promise((resolve) => setTimeout(resolve, pollMs))
      const groups = [...Map.groupBy(waiters, ({ asked }) => groupOf(asked))]
      for (const some of chunksOf(groups, READS_AT_ONCE)) await Promise.all(some.map(pollGroup))
    }
    isPolling = false
  }

  async function pollGroup([group, asking]: [number, readonly Waiter<Asked, Change>[]]): Promise<void> {
    try {
      const changeOf = await read(asking.map(({ asked }) => asked))
      failingSinceMs.delete(group)
      for (const { asked, resolve, reject } of asking) {
        try {
          const change = changeOf(asked)
          if (change !== undefined) resolve(change)
        } catch (error) {
          reject(error)
        }
      }
    } catch (err) {
      const nowMs = performance.now()
      const sinceMs = failingSinceMs.get(group) ?? nowMs
      failingSinceMs.set(group, sinceMs)
      logger.warn({ err, waiting: asking.length }, 'the poll for changes failed')
      if (nowMs - sinceMs < PATIENCE_MS) return
      failingSinceMs.delete(group)
      for (const { reject } of asking) reject(err)
    }
  }

  return async (asked: Asked, timeoutMs: number, signal: AbortSignal): Promise<Change | undefined> => {
    signal.throwIfAborted()
    const { promise, resolve, reject } = Promise.withResolvers<Change | undefined>()
    const waiter = { asked, resolve, reject }
    const timer = setTimeout(() => resolve(undefined), timeoutMs)
    waiters.add(waiter)
    void pollWhileAnyoneWaits()
    return await untilAborted(promise, signal).finally(() => {
      waiters.delete(waiter)
      clearTimeout(timer)
    })
  }
}
