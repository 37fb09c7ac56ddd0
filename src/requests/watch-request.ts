import type { Account } from '../domain/account.ts'
import { formatDecimal } from '../domain/decimal.ts'
import type { Logger } from '../domain/logger.ts'
import { waybillError } from '../errors/waybill-error.ts'
import { withLimit } from '../postgres/cancellable.ts'
import { createPoll } from '../store/poll-for-changes.ts'
import type { RequestWithBalance } from './sql/request-repository.ts'

/** A message of a watch: the request as it is now, or a heartbeat. */
export type RequestMessage =
  | { readonly type: 'STATE'; readonly found: RequestWithBalance; readonly at: Date }
  | { readonly type: 'HEARTBEAT'; readonly at: Date }

/**
 * Yields a request as it was found, then as it is after each change and when it expires, and never ends by itself. Changes that come while the caller has not
 * taken the last message are one.
 *
 * @throws REQUEST_NOT_FOUND when it was removed; the database's error when it could not be read for a while; the signal's reason
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
}

const POLL_MS = 500
/** The silence after which a HEARTBEAT is sent. */
const HEARTBEAT_MS = 15_000
/** So that an account on a lost server does not hold up the others. */
const READ_TIMEOUT_MS = 5_000

interface Watched {
  readonly account: Account
  readonly requestId: string
  /** The state that was sent last. */
  readonly sent: string
}

/**
 * Creates the watch. While anybody waits, the requests that are waited for are read every half second, with one statement an account. The log
 * of changes would not do: it has an expiry only once the chain is read up to it.
 */
export function createWatchRequest({ readMany, logger, now }: RequestWatchOptions): WatchRequest {
  const waitForOther = createPoll<Watched, RequestWithBalance>({
    pollMs: POLL_MS,
    logger,
    groupOf: ({ account }) => account.id,
    async read(watched) {
      const [{ account }] = watched as [Watched]
      const ids = [...new Set(watched.map(({ requestId }) => requestId))]
      const read = await withLimit(READ_TIMEOUT_MS, (signal) => readMany(account, ids, signal))
      const byId = new Map(read.map((found) => [found.request.requestId, found]))
      return ({ requestId, sent }) => {
        const found = byId.get(requestId)
        if (found === undefined) throw waybillError('REQUEST_NOT_FOUND', { value: requestId })
        return stateOf(found) === sent ? undefined : found
      }
    },
  })
  return async function* watchRequest(account, first, signal) {
    let found = first
    for (;;) {
      const at = now()
      const sent = stateOf(found)
      yield { type: 'STATE', found, at }
      const { requestId } = found.request
      let other: RequestWithBalance | undefined
      while (other === undefined) {
        other = await waitForOther({ account, requestId, sent }, HEARTBEAT_MS, signal)
        if (other === undefined) yield { type: 'HEARTBEAT', at: now() }
      }
      found = other
    }
  }
}

/** What can change of a request. The status of one that expires changes from one reading to the next. */
function stateOf({ request, balance }: RequestWithBalance): string {
  const { status, paidAmount, pendingAmount, outstandingAmount, overpaidAmount } = balance
  const amounts = [paidAmount, pendingAmount, outstandingAmount, overpaidAmount].map(formatDecimal)
  const { title, expiresAt, cancelledAt, metadata } = request
  return JSON.stringify([status, amounts, title, expiresAt, cancelledAt, metadata])
}
