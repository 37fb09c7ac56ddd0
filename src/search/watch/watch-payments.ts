import type { Account } from '../../domain/account.ts'
import { waybillError } from '../../errors/waybill-error.ts'
import type { PaymentFilter } from '../filter/payment-filter.ts'
import type { SearchInput } from '../filter/search-input.ts'
import type { LogExtent, WatchBatch, WatchEvent, WatchRepository } from '../sql/watch-repository.ts'
import { createSharedReads } from './share-reads.ts'
import { decodeWatchCursor, encodeWatchCursor, watchSeal } from './watch-cursor.ts'
import type { WatchHub } from './watch-hub.ts'

/** What a watch tells: what happened, or how far it has looked. */
export type WatchMessage =
  | (WatchEvent & { readonly watchCursor: string })
  | { readonly type: 'HEARTBEAT'; readonly at: Date; readonly watchCursor: string }

export interface WatchTerms {
  /** Where to begin; undefined for now. */
  readonly watchCursor: string | undefined
  readonly signal: AbortSignal
}

/**
 * Tells every change that touches a filter, in the order of commits, each once, and never ends by itself. A HEARTBEAT tells when all
 * that was there at the beginning has been told, which is at once where it begins now. What nobody asks for is not read.
 *
 * @throws what is wrong with the filter; INVALID_WATCH_CURSOR, CURSOR_EXPIRED, CURSOR_AHEAD, TOO_MANY_WATCHERS; the signal's reason
 *   when it fires
 */
export type WatchPayments = (
  account: Account,
  input: SearchInput,
  terms: WatchTerms,
) => AsyncGenerator<WatchMessage, never>

export interface WatchOptions {
  readonly parseFilter: (account: Account, input: SearchInput, signal: AbortSignal) => Promise<PaymentFilter>
  readonly repository: Pick<WatchRepository, 'read' | 'extent'>
  readonly hub: WatchHub
  /** 32 bytes that all processes on the database share. */
  readonly cursorSecret: Uint8Array
  readonly now: () => Date
  /** After how much silence a HEARTBEAT tells how far the watch has looked. */
  readonly heartbeatMs?: number
  readonly batch?: WatchBatchSize
}

/** What a watch holds at most, but for one event that is larger by itself. */
export interface WatchBatchSize {
  readonly changes: number
  readonly events: number
  readonly bytes: number
}

const HEARTBEAT_MS = 15_000

/** A thousand changes that match nothing take some 20 ms of the database; a thousand readers hold some 100 MB. */
const BATCH: WatchBatchSize = { changes: 1_000, events: 64, bytes: 64 * 1024 }

/** Of the connections of the database, of which there are eight as a rule. */
const MOST_READS_AT_ONCE = 3

export function createWatchPayments(options: WatchOptions): WatchPayments {
  const { parseFilter, repository, hub, cursorSecret, now, heartbeatMs = HEARTBEAT_MS, batch: size = BATCH } = options
  const reads = createSharedReads<WatchBatch>({ mostAtOnce: MOST_READS_AT_ONCE })

  /** Those who watch the same have read equally far once they wait, so they read together. */
  function readerOf(filter: PaymentFilter, signal: AbortSignal): (after: bigint) => Promise<WatchBatch> {
    const name = JSON.stringify(filter)
    let { events } = size
    return async (after) => {
      const query = { filter, after, ...size, events }
      const batch = await reads.get(`${after} ${events} ${name}`, (shared) => repository.read(query, shared), signal)
      // Large events are measured by reading them, so no more are asked for than there may be room for.
      events = batch.isFull ? Math.max(1, 2 * batch.events.length) : size.events
      return batch
    }
  }

  return async function* watchPayments(account, input, { watchCursor, signal }) {
    const filter = await parseFilter(account, input, signal)
    const place = hub.enter(account.id)
    try {
      const seal = watchSeal(cursorSecret, account.id)
      const readAfter = readerOf(filter, signal)
      const extent = await repository.extent(account.id, signal)
      let at = watchCursor === undefined ? extent.lastChange : decodeWatchCursor(seal, watchCursor)
      checkWithin(extent, at)
      let saidAtMs = performance.now()
      const restMs = () => Math.max(0, saidAtMs + heartbeatMs - performance.now())
      const beat = () => {
        saidAtMs = performance.now()
        return { type: 'HEARTBEAT', at: now(), watchCursor: encodeWatchCursor(seal, at) } as const
      }
      let hasCaughtUp = false
      for (;;) {
        const batch = await readAfter(at)
        checkWithin(batch, at)
        for (const event of batch.events) yield { ...event, watchCursor: encodeWatchCursor(seal, event.change) }
        at = batch.through
        if (batch.events.length > 0) saidAtMs = performance.now()
        if (at < batch.lastChange) {
          if (restMs() === 0) yield beat()
        } else {
          if (!hasCaughtUp) yield beat()
          hasCaughtUp = true
          while (!(await place.waitBeyond(at, restMs(), signal))) yield beat()
        }
      }
    } finally {
      place.leave()
    }
  }
}

/** @throws CURSOR_EXPIRED, CURSOR_AHEAD when what follows the change is not all there */
function checkWithin({ lastChange, prunedChange }: LogExtent, change: bigint): void {
  if (change < prunedChange) throw waybillError('CURSOR_EXPIRED', {})
  if (change > lastChange) throw waybillError('CURSOR_AHEAD', {})
}
