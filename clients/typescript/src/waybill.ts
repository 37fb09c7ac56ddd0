import type { MessageInitShape } from '@bufbuild/protobuf'
import { KeysService } from '../gen/payments/v1/keys_service_pb.js'
import { OperationsService } from '../gen/payments/v1/operations_service_pb.js'
import type { Pagination } from '../gen/payments/v1/pagination_pb.js'
import type { Payment } from '../gen/payments/v1/payment_pb.js'
import type { PaymentRequest } from '../gen/payments/v1/payment_request_pb.js'
import {
  type ExportPaymentsRequestSchema,
  PaymentSearchService,
  type SearchPaymentsRequestSchema,
} from '../gen/payments/v1/payment_search_service_pb.js'
import { type ListPaymentRequestsRequestSchema, RequestsService } from '../gen/payments/v1/requests_service_pb.js'
import { RoutesService } from '../gen/payments/v1/routes_service_pb.js'
import { WebhooksService } from '../gen/payments/v1/webhooks_service_pb.js'
import { type CallOptions, type Calls, createCaller, makeCalls, type WaybillOptions } from './calls.ts'
import { type ExportCsvOptions, exportCsv } from './export-csv.ts'
import type { KeepOpenOptions } from './keep-open.ts'
import { type PaymentChange, type WatchFilter, type WatchOptions, watchPaymentRequest, watchPayments } from './watch.ts'

type PlainCalls = Calls<typeof RoutesService> &
  Calls<typeof RequestsService> &
  Omit<Calls<typeof PaymentSearchService>, 'watchPayments'> &
  Calls<typeof OperationsService> &
  Calls<typeof WebhooksService> &
  Calls<typeof KeysService>

/** A client: every method of the service by its name, and what several calls do together. */
export interface Waybill extends Omit<PlainCalls, 'watchPaymentRequest'> {
  /** Every payment that matches, over all pages. */
  eachPayment(
    filter?: MessageInitShape<typeof SearchPaymentsRequestSchema>,
    options?: CallOptions,
  ): AsyncGenerator<Payment, void, undefined>
  /** Every request that matches, over all pages. */
  eachPaymentRequest(
    filter?: MessageInitShape<typeof ListPaymentRequestsRequestSchema>,
    options?: CallOptions,
  ): AsyncGenerator<PaymentRequest, void, undefined>
  /** The payments that match as CSV in UTF-8, in pieces as they come; `columns` chooses what stands in it. */
  exportCsv(
    filter?: MessageInitShape<typeof ExportPaymentsRequestSchema>,
    options?: ExportCsvOptions,
  ): AsyncGenerator<Uint8Array<ArrayBuffer>, void, undefined>
  /** The changes of the payments that match, each once and in order, through cut connections and restarts of the service. */
  watchPayments(filter: WatchFilter, options?: WatchOptions): AsyncGenerator<PaymentChange, void, undefined>
  /** One request as it is, then after each change and each reconnection. */
  watchPaymentRequest(
    paymentReference: string,
    options?: KeepOpenOptions,
  ): AsyncGenerator<PaymentRequest, void, undefined>
}

/**
 * Creates a client. It opens nothing until it is called.
 *
 * Calls throw WaybillCallError, whose `reason` says what was wrong, or the reason of an aborted signal.
 */
export function createWaybill(options: WaybillOptions): Waybill {
  const caller = createCaller(options)
  const requests = makeCalls(caller, RequestsService)
  const payments = makeCalls(caller, PaymentSearchService)
  return {
    ...makeCalls(caller, RoutesService),
    ...requests,
    ...payments,
    ...makeCalls(caller, OperationsService),
    ...makeCalls(caller, WebhooksService),
    ...makeCalls(caller, KeysService),
    async *eachPayment(filter = {}, options) {
      for await (const page of pagesOf((each) => payments.searchPayments(each, options), filter)) yield* page.payments
    },
    async *eachPaymentRequest(filter = {}, options) {
      for await (const page of pagesOf((each) => requests.listPaymentRequests(each, options), filter))
        yield* page.requests
    },
    exportCsv: (filter = {}, more) => exportCsv(caller, filter, more),
    watchPayments: (filter, options) => watchPayments(payments, filter, options),
    watchPaymentRequest: (reference, options) => watchPaymentRequest(requests, reference, options),
  }
}

/** The pages of a list. The next page is asked for when the one before has been read. A cursor carries filters, order and limit. */
async function* pagesOf<F, P extends { readonly pagination?: Pagination | undefined }>(
  ask: (filter: F | { readonly cursor: string }) => Promise<P>,
  filter: F,
): AsyncGenerator<P, void, undefined> {
  for (let next: F | { readonly cursor: string } | undefined = filter; next !== undefined; ) {
    const page: P = await ask(next)
    yield page
    const cursor = page.pagination?.nextCursor
    next = cursor === undefined ? undefined : { cursor }
  }
}
