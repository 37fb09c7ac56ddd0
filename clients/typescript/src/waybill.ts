import type { MessageInitShape } from '@bufbuild/protobuf'
import { createConnectTransport } from '@connectrpc/connect-web'
import { OperationsService } from '../gen/payments/v1/operations_service_pb.js'
import type { Payment } from '../gen/payments/v1/payment_pb.js'
import type { PaymentRequest } from '../gen/payments/v1/payment_request_pb.js'
import { PaymentSearchService, type SearchPaymentsRequestSchema } from '../gen/payments/v1/payment_search_service_pb.js'
import type { WatchPaymentsResponse } from '../gen/payments/v1/payment_watch_pb.js'
import { type ListPaymentRequestsRequestSchema, RequestsService } from '../gen/payments/v1/requests_service_pb.js'
import { RoutesService } from '../gen/payments/v1/routes_service_pb.js'
import { type Caller, type CallOptions, type Calls, makeCalls } from './calls.ts'
import type { KeepOpenOptions } from './keep-open.ts'
import { eachPayment, eachPaymentRequest } from './pages.ts'
import { type WatchFilter, type WatchOptions, watchPaymentRequest, watchPayments } from './watch.ts'

/** Where the service is and who calls it. */
export interface WaybillOptions {
  /** Address of the service, `https://pay.example.com`. */
  readonly baseUrl: string
  /** An account's key (`wb_…`) on a server, a publishable one (`wbp_…`) in a page. */
  readonly apiKey: string
  /** The account, where the key is a platform's. */
  readonly account?: string | undefined
  /** Default: `fetch` of the runtime. */
  readonly fetch?: typeof globalThis.fetch | undefined
  /** Time for a call with its retries. Default: 30,000. Streams have no limit. */
  readonly timeoutMs?: number | undefined
  /** How often a call is tried again where that is safe. Default: 2. */
  readonly retries?: number | undefined
}

type PlainCalls = Calls<typeof RoutesService> &
  Calls<typeof RequestsService> &
  Omit<Calls<typeof PaymentSearchService>, 'watchPayments'> &
  Calls<typeof OperationsService>

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
  /** The changes of the payments that match, each once and in order, through cut connections and restarts of the service. */
  watchPayments(filter: WatchFilter, options?: WatchOptions): AsyncGenerator<WatchPaymentsResponse, void, undefined>
  /** One request as it is, then after each change, through cut connections. */
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
export function createWaybill({
  baseUrl,
  apiKey,
  account,
  fetch,
  timeoutMs = 30_000,
  retries = 2,
}: WaybillOptions): Waybill {
  const caller: Caller = {
    transport: createConnectTransport({
      baseUrl: baseUrl.replace(/\/+$/, ''),
      useBinaryFormat: true,
      ...(fetch !== undefined && { fetch }),
    }),
    headers: { 'x-api-key': apiKey, ...(account !== undefined && { 'x-account': account }) },
    timeoutMs,
    retries,
  }
  const requests = makeCalls(caller, RequestsService)
  const payments = makeCalls(caller, PaymentSearchService)
  return {
    ...makeCalls(caller, RoutesService),
    ...requests,
    ...payments,
    ...makeCalls(caller, OperationsService),
    eachPayment: (filter, options) => eachPayment(payments, filter, options),
    eachPaymentRequest: (filter, options) => eachPaymentRequest(requests, filter, options),
    watchPayments: (filter, options) => watchPayments(payments, filter, options),
    watchPaymentRequest: (reference, options) => watchPaymentRequest(requests, reference, options),
  }
}
