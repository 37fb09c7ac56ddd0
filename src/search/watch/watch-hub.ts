import type { Logger } from '../../domain/logger.ts'
import { waybillError } from '../../errors/waybill-error.ts'
import { createPoll } from '../../store/poll-for-changes.ts'

export type WatchHub = ReturnType<typeof createWatchHub>

export interface WatchHubOptions {
  /** The last change of each account that has any. */
  readonly readLastChanges: (accountIds: readonly number[]) => Promise<ReadonlyMap<number, bigint>>
  readonly logger: Logger
}

/** The latency of events, apart from the time to read them. */
const POLL_MS = 250
/** Watchers of one account in this process. */
const MAX_PER_ACCOUNT = 100

/** Makes the place where watchers wait for changes: one poll of the database for all of them, none while nobody waits. */
export function createWatchHub({ readLastChanges, logger }: WatchHubOptions) {
  const places = new Map<number, number>()
  const wait = createPoll<{ readonly accountId: number; readonly change: bigint }, true>({
    pollMs: POLL_MS,
    logger,
    groupOf: () => 0,
    async read(watched) {
      const last = await readLastChanges([...new Set(watched.map(({ accountId }) => accountId))])
      return ({ accountId, change }) => ((last.get(accountId) ?? 0n) === change ? undefined : true)
    },
  })

  return {
    /**
     * Waits until the account's last change differs from `change`, but no longer than `timeoutMs`.
     *
     * @returns whether it differs
     * @throws the signal's reason when it fires; the database's error when polls have failed for a while
     */
    waitForChange: async (accountId: number, change: bigint, timeoutMs: number, signal: AbortSignal) =>
      (await wait({ accountId, change }, timeoutMs, signal)) === true,

    /**
     * Takes a place for a watcher of an account.
     *
     * @throws TOO_MANY_STREAMS
     */
    enter(accountId: number) {
      const ofAccount = places.get(accountId) ?? 0
      if (ofAccount >= MAX_PER_ACCOUNT) {
        throw waybillError('TOO_MANY_STREAMS', { holder: 'account', limit: MAX_PER_ACCOUNT })
      }
      places.set(accountId, ofAccount + 1)
      return {
        /** Frees the place. */
        [Symbol.dispose](): void {
          const left = (places.get(accountId) ?? 1) - 1
          if (left === 0) places.delete(accountId)
          else places.set(accountId, left)
        },
      }
    },
  }
}
