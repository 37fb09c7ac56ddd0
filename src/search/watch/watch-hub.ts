import type { Logger } from '../../domain/logger.ts'
import { waybillError } from '../../errors/waybill-error.ts'

/** Where watchers wait for changes: one poll of the database for all of them, none while nobody waits. */
export interface WatchHub {
  /**
   * Takes a place for a watcher of an account.
   *
   * @throws TOO_MANY_STREAMS
   */
  enter(accountId: number): WatchPlace
}

export interface WatchPlace {
  /**
   * Waits until the account's last change differs from `change`, but no longer than `timeoutMs`.
   *
   * @returns whether it differs
   * @throws the signal's reason when it fires; the database's error when polls have failed for `patienceMs`
   */
  waitForChange(change: bigint, timeoutMs: number, signal: AbortSignal): Promise<boolean>
  /** Frees the place. */
  leave(): void
}

export interface WatchHubOptions {
  /** The last change of each account that has any. */
  readonly readLastChanges: (accountIds: readonly number[]) => Promise<ReadonlyMap<number, bigint>>
  readonly logger: Logger
  /** Pause between two polls, and so the latency of events, apart from the time to read them; default 250. */
  readonly pollMs?: number | undefined
  /** Watchers of one account in this process; default 100. */
  readonly maxPerAccount?: number | undefined
  /** How long polls may fail before waiters get the error; default 15,000. */
  readonly patienceMs?: number | undefined
}

const POLL_MS = 250
const MAX_PER_ACCOUNT = 100
const PATIENCE_MS = 15_000

interface Waiter {
  readonly accountId: number
  readonly change: bigint
  readonly resolve: (isOther: boolean) => void
  readonly reject: (error: unknown) => void
}

export function createWatchHub(options: WatchHubOptions): WatchHub {
  const { readLastChanges, logger, pollMs = POLL_MS, patienceMs = PATIENCE_MS } = options
  const { maxPerAccount = MAX_PER_ACCOUNT } = options
  const places = new Map<number, number>()
  const waiters = new Set<Waiter>()
  let isPolling = false
  let failingSinceMs: number | undefined

  async function pollWhileAnyoneWaits(): Promise<void> {
    if (isPolling) return
    isPolling = true
    while (waiters.size > 0) {
      await pause(pollMs)
      await poll()
    }
    isPolling = false
  }

  async function poll(): Promise<void> {
    const asking = [...waiters]
    if (asking.length === 0) return
    try {
      const last = await readLastChanges([...new Set(asking.map(({ accountId }) => accountId))])
      failingSinceMs = undefined
      for (const { accountId, change, resolve } of asking) if ((last.get(accountId) ?? 0n) !== change) resolve(true)
    } catch (err) {
      const nowMs = performance.now()
      failingSinceMs ??= nowMs
      logger.warn({ err, waiting: asking.length }, 'the poll for changes failed')
      if (nowMs - failingSinceMs < patienceMs) return
      for (const { reject } of asking) reject(err)
    }
  }

  async function wait(accountId: number, change: bigint, timeoutMs: number, signal: AbortSignal): Promise<boolean> {
    signal.throwIfAborted()
    const { promise, resolve, reject } = Promise.withResolvers<boolean>()
    const waiter: Waiter = { accountId, change, resolve, reject }
    const onAbort = () => reject(signal.reason)
    const timer = setTimeout(() => resolve(false), timeoutMs)
    signal.addEventListener('abort', onAbort, { once: true })
    waiters.add(waiter)
    void pollWhileAnyoneWaits()
    return promise.finally(() => {
      waiters.delete(waiter)
      clearTimeout(timer)
      signal.removeEventListener('abort', onAbort)
    })
  }

  return {
    enter(accountId) {
      const ofAccount = places.get(accountId) ?? 0
      if (ofAccount >= maxPerAccount)
        throw waybillError('TOO_MANY_STREAMS', { holder: 'account', limit: maxPerAccount })
      places.set(accountId, ofAccount + 1)
      return {
        waitForChange: (change, timeoutMs, signal) => wait(accountId, change, timeoutMs, signal),
        leave() {
          const left = (places.get(accountId) ?? 1) - 1
          if (left === 0) places.delete(accountId)
          else places.set(accountId, left)
        },
      }
    },
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
