import type { Account } from '../domain/account.ts'
import { formatDecimal } from '../domain/decimal.ts'
import type { Logger } from '../domain/logger.ts'
import { waybillError } from '../errors/waybill-error.ts'
import { withLimit } from '../postgres/cancellable.ts'
import type { RequestWithBalance } from './sql/request-repository.ts'

/** A message of a watch: the request as it is now, or a heartbeat. */
export type RequestMessage =
  | { readonly type: 'STATE'; readonly found: RequestWithBalance; readonly at: Date }
  | { readonly type: 'HEARTBEAT'; readonly at: Date }

/**
 * Yields a request as it was found, then as it is after each change and when it expires, and never ends by itself. Changes that come while the caller has not
 * taken the last message are one.
 *
 * @throws REQUEST_NOT_FOUND when it was removed; the database's error when it could not be read for `patienceMs`; the signal's reason
 */
export type WatchRequest = (
  account: Account,
  found: RequestWithBalance,
  signal: AbortSignal,
) => AsyncGenerator<RequestMessage, never>

export interface RequestWatchOptions {
  readonly readMany: (
    account: Account,
    requestIds: readonly string[],
    signal: AbortSignal,
  ) => Promise<readonly RequestWithBalance[]>
  readonly logger: Logger
  readonly now: () => Date
  /** Pause between two reads, and so the latency of changes; default 500. */
  readonly pollMs?: number | undefined
  /** The silence after which a HEARTBEAT is sent; default 15,000. */
  readonly heartbeatMs?: number | undefined
  /** How long reads of an account may fail before its watches get the error; default 15,000. */
  readonly patienceMs?: number | undefined
}

const POLL_MS = 500
const HEARTBEAT_MS = 15_000
const PATIENCE_MS = 15_000
/** A pool has eight connections by default. */
const READS_AT_ONCE = 3
/** So that an account on a lost server does not hold up the others. */
const READ_TIMEOUT_MS = 5_000

interface Waiter {
  readonly account: Account
  readonly requestId: string
  /** The state that was sent last. */
  readonly sent: string
  readonly resolve: (found: RequestWithBalance) => void
  readonly reject: (error: unknown) => void
}

/**
 * Creates the watch. While anybody waits, the requests that are waited for are read every half second, with one statement an account. The log
 * of changes would not do: a request that is cancelled or expires changes no payment.
 */
export function createWatchRequest(options: RequestWatchOptions): WatchRequest {
  const { now, heartbeatMs = HEARTBEAT_MS } = options
  const waitForOther = createPoll(options)
  return async function* watchRequest(account, first, signal) {
    let found = first
    for (;;) {
      const at = now()
      const sent = stateOf(found)
      yield { type: 'STATE', found, at }
      const { requestId } = found.request
      let other: RequestWithBalance | undefined
      while (other === undefined) {
        other = await waitForOther({ account, requestId, sent }, heartbeatMs, signal)
        if (other === undefined) yield { type: 'HEARTBEAT', at: now() }
      }
      found = other
    }
  }
}

/** @returns a function that waits for another state of a request, no longer than a time-out, after which it returns undefined */
function createPoll({ readMany, logger, pollMs = POLL_MS, patienceMs = PATIENCE_MS }: RequestWatchOptions) {
  const waiters = new Set<Waiter>()
  const failingSinceMs = new Map<number, number>()
  let isPolling = false

  async function pollWhileAnyoneWaits(): Promise<void> {
    if (isPolling) return
    isPolling = true
    while (waiters.size > 0) {
      await pause(pollMs)
      const accounts = [...Map.groupBy(waiters, ({ account }) => account.id).values()]
      for (let from = 0; from < accounts.length; from += READS_AT_ONCE) {
        await Promise.all(accounts.slice(from, from + READS_AT_ONCE).map(pollAccount))
      }
    }
    isPolling = false
  }

  async function pollAccount(asking: readonly Waiter[]): Promise<void> {
    const [{ account } = { account: undefined }] = asking
    if (account === undefined) return
    try {
      const ids = [...new Set(asking.map(({ requestId }) => requestId))]
      const read = await withLimit(READ_TIMEOUT_MS, (signal) => readMany(account, ids, signal))
      failingSinceMs.delete(account.id)
      const byId = new Map(read.map((found) => [found.request.requestId, found]))
      for (const { requestId, sent, resolve, reject } of asking) {
        const found = byId.get(requestId)
        if (found === undefined) reject(waybillError('REQUEST_NOT_FOUND', { value: requestId }))
        else if (stateOf(found) !== sent) resolve(found)
      }
    } catch (err) {
      const nowMs = performance.now()
      const sinceMs = failingSinceMs.get(account.id) ?? nowMs
      failingSinceMs.set(account.id, sinceMs)
      logger.warn({ err, waiting: asking.length }, 'watched requests could not be read')
      if (nowMs - sinceMs < patienceMs) return
      failingSinceMs.delete(account.id)
      for (const { reject } of asking) reject(err)
    }
  }

  return (of: Pick<Waiter, 'account' | 'requestId' | 'sent'>, timeoutMs: number, signal: AbortSignal) => {
    signal.throwIfAborted()
    const { promise, resolve, reject } = Promise.withResolvers<RequestWithBalance | undefined>()
    const waiter: Waiter = { ...of, resolve, reject }
    const onAbort = () => reject(signal.reason)
    const timer = setTimeout(() => resolve(undefined), timeoutMs)
    signal.addEventListener('abort', onAbort, { once: true })
    waiters.add(waiter)
    void pollWhileAnyoneWaits()
    return promise.finally(() => {
      waiters.delete(waiter)
      clearTimeout(timer)
      signal.removeEventListener('abort', onAbort)
    })
  }
}

/** What can change of a request. The status of one that expires changes from one reading to the next. */
function stateOf({ request, balance }: RequestWithBalance): string {
  const { status, paidAmount, pendingAmount, outstandingAmount, overpaidAmount } = balance
  const amounts = [paidAmount, pendingAmount, outstandingAmount, overpaidAmount].map(formatDecimal)
  return [status, ...amounts, request.cancelledAt?.getTime()].join(' ')
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
