import type { Account } from '../../domain/account.ts'
import { untilAborted } from '../../domain/within.ts'
import { waybillError } from '../../errors/waybill-error.ts'
import type { PaymentFilter, SearchInput } from '../filter/payment-filter.ts'
import type { PaymentSearch } from '../page/payment-search.ts'
import { decodeWatchCursor, encodeWatchCursor, watchSeal } from '../query/page-query.ts'
import type { LogExtent, WatchBatch, WatchEvent, WatchRepository } from '../sql/watch-repository.ts'
import type { WatchHub } from './watch-hub.ts'

/** A message of a watch: a change, or a heartbeat that says how far the log has been read. */
export type WatchMessage =
  | (WatchEvent & { readonly watchCursor: string })
  | { readonly type: 'HEARTBEAT'; readonly at: Date; readonly watchCursor: string }

export interface WatchTerms {
  /** After which change to begin; undefined: after the newest. */
  readonly watchCursor: string | undefined
  readonly signal: AbortSignal
}

export type WatchPayments = ReturnType<typeof createWatchPayments>

export interface WatchOptions {
  readonly parseFilter: PaymentSearch['parseFilter']
  readonly repository: Pick<WatchRepository, 'read' | 'extent'>
  readonly hub: WatchHub
  /** 32 bytes, the same for all processes on one database. */
  readonly cursorSecret: Uint8Array
  readonly now: () => Date
  /** The silence after which a HEARTBEAT is sent; default 15,000. Tests that wait for heartbeats give a shorter one. */
  readonly heartbeatMs?: number | undefined
  /** Tests give small ones, so that few changes fill many batches. */
  readonly batch?: WatchBatchSize | undefined
}

/** Limits of what a watch holds in memory; a single event may exceed the bytes. */
export interface WatchBatchSize {
  readonly changes: number
  readonly events: number
  readonly bytes: number
}

const HEARTBEAT_MS = 15_000

/** A thousand changes that match nothing cost the database some 20 ms; a thousand watches hold some 100 MB. */
const BATCH: WatchBatchSize = { changes: 1_000, events: 64, bytes: 64 * 1024 }

/**
 * Makes what yields every change that affects a filter, once each, in the order of commits, and never ends by itself. A HEARTBEAT says how far
 * the log was read: one comes when the watch has caught up with it, at once where it begins at the newest change, and one after each
 * silence, also on the way there. The log is read only as fast as the caller takes messages.
 *
 * @throws the reason of an invalid filter; INVALID_WATCH_CURSOR, CURSOR_EXPIRED, TOO_MANY_STREAMS; the signal's reason
 *   when it fires
 */
export function createWatchPayments(options: WatchOptions) {
  const { parseFilter, repository, hub, cursorSecret, now, heartbeatMs = HEARTBEAT_MS, batch: size = BATCH } = options
  const shareRead = createShareRead<WatchBatch>()

  /** Watches with the same filter that wait have all read up to the same change, so they share the next read. */
  function readerOf(filter: PaymentFilter, signal: AbortSignal): (after: bigint) => Promise<WatchBatch> {
    const name = JSON.stringify(filter)
    let { events } = size
    return async (after) => {
      const query = { filter, after, ...size, events }
      const batch = await shareRead(`${after} ${events} ${name}`, (shared) => repository.read(query, shared), signal)
      // the database has to read large events to measure them, so the next batch asks for about as many as fitted into this one
      events = batch.isFull ? Math.max(1, 2 * batch.events.length) : size.events
      return batch
    }
  }

  return async function* watchPayments(
    account: Account,
    input: SearchInput,
    { watchCursor, signal }: WatchTerms,
  ): AsyncGenerator<WatchMessage, never> {
    const filter = await parseFilter(account, input, signal)
    using _place = hub.enter(account.id)
    const seal = watchSeal(cursorSecret, account.id)
    const readAfter = readerOf(filter, signal)
    const extent = await repository.extent(account.id, signal)
    let at = watchCursor === undefined ? extent.lastChange : decodeWatchCursor(seal, watchCursor)
    checkWithin(extent, at)
    let sentAtMs = performance.now()
    const silenceLeftMs = () => Math.max(0, sentAtMs + heartbeatMs - performance.now())
    const beat = () => {
      sentAtMs = performance.now()
      return { type: 'HEARTBEAT', at: now(), watchCursor: encodeWatchCursor(seal, at) } as const
    }
    let hasCaughtUp = false
    for (;;) {
      const batch = await readAfter(at)
      checkWithin(batch, at)
      for (const event of batch.events) yield { ...event, watchCursor: encodeWatchCursor(seal, event.change) }
      at = batch.through
      if (batch.events.length > 0) sentAtMs = performance.now()
      if (at < batch.lastChange) {
        if (silenceLeftMs() === 0) yield beat()
      } else {
        if (!hasCaughtUp) yield beat()
        hasCaughtUp = true
        while (!(await hub.waitForChange(account.id, at, silenceLeftMs(), signal))) yield beat()
      }
    }
  }
}

const TOO_OLD = 'it is older than 7 days, for which changes are kept'
const AHEAD = 'it is ahead of all changes, because the database was restored to an earlier state'

/** @throws CURSOR_EXPIRED where later changes have been pruned, and where the log has not reached the change */
function checkWithin({ lastChange, prunedChange }: LogExtent, change: bigint): void {
  if (change < prunedChange) throw waybillError('CURSOR_EXPIRED', { detail: TOO_OLD })
  if (change > lastChange) throw waybillError('CURSOR_EXPIRED', { detail: AHEAD })
}

/** Of all watches; a pool has eight connections by default. */
const MAX_AT_ONCE = 3

interface SharedRead<T> {
  readonly result: Promise<T>
  readonly controller: AbortController
  callers: number
}

/**
 * Lets callers that want the same thing at the same time share one read of it, and limits how many reads run at once, so that watches do
 * not take all database connections from other calls. The function that it returns starts a read, or joins the running one of the same name. It
 * throws the signal's reason when that fires; the read is cancelled when its last caller has left.
 */
export function createShareRead<T>() {
  const readings = new Map<string, SharedRead<T>>()
  const queue: (() => void)[] = []
  let running = 0

  async function inOrder(read: (signal: AbortSignal) => Promise<T>, signal: AbortSignal): Promise<T> {
    if (running >= MAX_AT_ONCE) await new Promise<void>((resolve) => queue.push(resolve))
    else running += 1
    try {
      signal.throwIfAborted()
      return await read(signal)
    } finally {
      // the next in the queue takes over this read's slot
      const next = queue.shift()
      if (next === undefined) running -= 1
      else next()
    }
  }

  function begin(name: string, read: (signal: AbortSignal) => Promise<T>): SharedRead<T> {
    const controller = new AbortController()
    const result = inOrder(read, controller.signal)
    const reading: SharedRead<T> = { result, controller, callers: 0 }
    const end = () => {
      if (readings.get(name) === reading) readings.delete(name)
    }
    result.then(end, end)
    readings.set(name, reading)
    return reading
  }

  return async (name: string, read: (signal: AbortSignal) => Promise<T>, signal: AbortSignal): Promise<T> => {
    signal.throwIfAborted()
    const reading = readings.get(name) ?? begin(name, read)
    reading.callers += 1
    try {
      return await untilAborted(reading.result, signal)
    } finally {
      reading.callers -= 1
      if (reading.callers === 0) {
        if (readings.get(name) === reading) readings.delete(name)
        reading.controller.abort()
      }
    }
  }
}
