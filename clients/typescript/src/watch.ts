import type { MessageInitShape } from '@bufbuild/protobuf'
import type { Payment } from '../gen/payments/v1/payment_pb.js'
import type { PaymentRequest } from '../gen/payments/v1/payment_request_pb.js'
import {
  type PaymentSearchService,
  type WatchPaymentsRequestSchema,
  type WatchPaymentsResponse,
  WatchPaymentsResponse_Type,
} from '../gen/payments/v1/payment_search_service_pb.js'
import type { RequestsService } from '../gen/payments/v1/requests_service_pb.js'
import { toCallError } from './call-error.ts'
import type { Calls } from './calls.ts'
import { type KeepOpenOptions, keepOpen } from './keep-open.ts'

/** Filters of a watch: those of a search. */
export type WatchFilter = Omit<
  Exclude<MessageInitShape<typeof WatchPaymentsRequestSchema>, { $typeName: string }>,
  'watchCursor' | 'ticket'
>

/** A change of a payment. A payment that a reorg removed is absent. */
export type PaymentChange = WatchPaymentsResponse & { readonly id: string } & (
    | {
        readonly type: WatchPaymentsResponse_Type.ADDED | WatchPaymentsResponse_Type.UPDATED
        readonly payment: Payment
      }
    | { readonly type: WatchPaymentsResponse_Type.REMOVED }
  )

/** Where a watch begins, and who learns of its progress. */
export interface WatchOptions extends KeepOpenOptions {
  /** The `watchCursor` of a search or of a change. Default: begin now, at the `watchCursor` of a search. */
  readonly from?: string | undefined
  /** Called when every change up to this cursor has been handled: a good moment to store it. It is waited for, and what it throws ends the watch. */
  readonly onPosition?: ((watchCursor: string) => void | Promise<void>) | undefined
}

/**
 * The changes of the payments that match, each once and in order, through cut connections and restarts of the service.
 *
 * @throws WaybillCallError CURSOR_EXPIRED when the log does not hold `from`: search again and watch from the `watchCursor` of
 * the answer
 */
export async function* watchPayments(
  calls: Pick<Calls<typeof PaymentSearchService>, 'watchPayments' | 'searchPayments'>,
  filter: WatchFilter,
  { from, onPosition, ...options }: WatchOptions = {},
): AsyncGenerator<PaymentChange, void, undefined> {
  let watchCursor = from
  async function* open(signal: AbortSignal) {
    // A watch that begins "now" and is cut before its first event would begin at a later "now".
    watchCursor ??= (await calls.searchPayments({ limit: 1 }, { signal })).watchCursor
    yield* calls.watchPayments({ ...filter, ...(watchCursor !== undefined && { watchCursor }) }, { signal })
  }
  for await (const event of keepOpen(open, options)) {
    watchCursor = event.watchCursor
    if (event.type === WatchPaymentsResponse_Type.HEARTBEAT) await onPosition?.(watchCursor)
    else yield event as PaymentChange
  }
}

type RequestCalls = Pick<Calls<typeof RequestsService>, 'watchPaymentRequest' | 'getPaymentRequest'>

/**
 * One request as it is, then after each change, through cut connections. After each cut it comes again, also unchanged: the reader then knows it to be
 * current. Where the service has no stream to give it asks every few seconds. It does not end by itself: a request that is PAID may still be refunded.
 */
export async function* watchPaymentRequest(
  calls: RequestCalls,
  paymentReference: string,
  options: KeepOpenOptions = {},
): AsyncGenerator<PaymentRequest, void, undefined> {
  for await (const { request } of keepOpen((signal) => openOrAsk(calls, paymentReference, signal), options)) {
    if (request !== undefined) yield request
  }
}

async function* openOrAsk(
  calls: RequestCalls,
  paymentReference: string,
  signal: AbortSignal,
): AsyncGenerator<{ readonly request?: PaymentRequest | undefined }, void, undefined> {
  try {
    yield* calls.watchPaymentRequest({ paymentReference }, { signal })
  } catch (thrown) {
    if (toCallError(thrown).code === 'resource_exhausted') {
      yield { request: await calls.getPaymentRequest({ paymentReference }, { signal }) }
    }
    throw thrown
  }
}
