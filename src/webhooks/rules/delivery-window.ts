import type { DeliveredChange, Endpoint, Outcome, PauseReason, WebhookEvent } from './endpoint.ts'
import { nextAttemptAt } from './retry-delivery.ts'

/** An attempt that has ended. */
export interface Attempt extends DeliveredChange {
  /** Those made, this one included. */
  readonly attempts: number
  readonly attemptedAt: Date
  readonly outcome: Outcome
}

/** What has happened, to be stored in one transaction. */
export interface Progress {
  readonly position: bigint
  readonly lostChanges: bigint
  /** Those that succeeded. */
  readonly delivered: readonly Attempt[]
  /** First attempts that failed, and retries that failed, each with its next attempt. */
  readonly failed: readonly (Attempt & { readonly dueAt: Date })[]
  /** Changes whose subject has a parked delivery. */
  readonly behind: readonly DeliveredChange[]
  /** Retries that succeeded, and parked changes that there is nothing to send of any more. */
  readonly unparked: readonly DeliveredChange[]
}

/** A delivery that is to be made or under way. */
interface Entry {
  readonly event: WebhookEvent
  /** Attempts made. */
  readonly attempts: number
  /** It was parked. */
  readonly isRetry: boolean
  isSending: boolean
}

type News = { -readonly [K in 'delivered' | 'failed' | 'behind' | 'unparked']: Progress[K][number][] } & {
  lostChanges: bigint
}

const noNews = (): News => ({ delivered: [], failed: [], behind: [], unparked: [], lostChanges: 0n })

export type DeliveryWindow = ReturnType<typeof createDeliveryWindow>

/**
 * Decides which delivery of an endpoint is made next: one at a time of each payment or request, in the order of changes; none behind a parked one.
 *
 * @param parkedSubjects - the first parked change of each subject that has any
 */
export function createDeliveryWindow({ position }: Pick<Endpoint, 'position'>, parkedSubjects: Map<string, bigint>) {
  const queue = new Set<Entry>()
  const busy = new Set<string>()
  let parked = parkedSubjects
  let news = noNews()
  let through = position
  let saved = position
  let pausing: PauseReason | undefined

  const openChanges = (isRetry: boolean) => changesOf([...queue].filter((entry) => entry.isRetry === isRetry))

  return {
    /** The last change that was read. */
    through: () => through,
    size: () => queue.size,
    /** Why the endpoint is to be paused; undefined where it is not. */
    pausing: () => pausing,
    /** What is parked and not stored yet. */
    unsavedParked: () => news.failed.length + news.behind.length,
    /** Changes whose retry is to be made, under way, or has ended and is not stored: their stored time of the next attempt is that of this retry. */
    retrying: () => [...openChanges(true), ...[...news.failed, ...news.unparked].map(({ change }) => change)],
    /** Takes what was read up to a change. */
    take(events: readonly WebhookEvent[], upTo: bigint): void {
      for (const event of events) queue.add({ event, attempts: 0, isRetry: false, isSending: false })
      through = upTo
    },
    /** Goes on after changes that were pruned before they were read. */
    lose(changes: bigint): void {
      news.lostChanges += changes
      through += changes
    },
    retry(event: WebhookEvent, attempts: number): void {
      queue.add({ event, attempts, isRetry: true, isSending: false })
    },
    /** Drops a parked change that there is nothing to send of any more. */
    drop(change: DeliveredChange, isPruned: boolean): void {
      news.unparked.push(change)
      if (isPruned) news.lostChanges += 1n
    },
    /** The deliveries that may be made now, with at most `limit` under way. */
    begin(limit: number): readonly Entry[] {
      const begun: Entry[] = []
      for (const entry of queue) {
        if (busy.size >= limit || pausing !== undefined) break
        const { subject, change } = entry.event
        const first = parked.get(subject)
        if (entry.isSending || busy.has(subject)) continue
        if (entry.isRetry || first === undefined) {
          entry.isSending = true
          busy.add(subject)
          begun.push(entry)
        } else {
          queue.delete(entry)
          // What comes before the first parked one was delivered before a restart.
          if (change > first) news.behind.push(entry.event)
        }
      }
      return begun
    },
    settle(entry: Entry, outcome: Outcome, attemptedAt: Date): void {
      const { event, attempts, isRetry } = entry
      queue.delete(entry)
      busy.delete(event.subject)
      const ended = { ...event, attempts: attempts + 1, attemptedAt, outcome }
      if (outcome.failure === undefined) {
        news.delivered.push(ended)
        if (isRetry) news.unparked.push(event)
        return
      }
      const dueAt = nextAttemptAt(ended.attempts, attemptedAt, outcome.retryAt)
      pausing ??= outcome.status === 410 ? 'GONE' : dueAt === undefined ? 'RETRIES_EXHAUSTED' : undefined
      news.failed.push({ ...ended, dueAt: dueAt ?? attemptedAt })
      addFirst(parked, event)
    },
    /** Whether anything has ended since the last {@link takeProgress}. */
    hasNews: () => [news.delivered, news.failed, news.behind].some((list) => list.length > 0),
    /** What is to be stored now; undefined for nothing. The position is the last change before which nothing is open. */
    takeProgress(): Progress | undefined {
      const reached = openChanges(false).reduce((least, change) => (change <= least ? change - 1n : least), through)
      const { delivered, failed, behind, unparked } = news
      if (reached === saved && [delivered, failed, behind, unparked].every((list) => list.length === 0))
        return undefined
      const progress = { ...news, position: reached }
      news = noNews()
      saved = reached
      return progress
    },
    /** Takes what is parked as it is stored. What has failed or was parked since is stored with the next progress. */
    setParked(stored: Map<string, bigint>): void {
      parked = stored
      for (const each of [...news.failed, ...news.behind]) addFirst(parked, each)
    },
  }
}

const changesOf = (entries: readonly Entry[]) => entries.map(({ event }) => event.change)

function addFirst(parked: Map<string, bigint>, { subject, change }: DeliveredChange): void {
  if (!parked.has(subject)) parked.set(subject, change)
}
