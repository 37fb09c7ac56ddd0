import type { MessageInitShape } from '@bufbuild/protobuf'
import type { Payment } from '../gen/payments/v1/payment_pb.js'
import type { PaymentRequest } from '../gen/payments/v1/payment_request_pb.js'
import type { PaymentSearchService, SearchPaymentsRequestSchema } from '../gen/payments/v1/payment_search_service_pb.js'
import type { ListPaymentRequestsRequestSchema, RequestsService } from '../gen/payments/v1/requests_service_pb.js'
import type { CallOptions, Calls } from './calls.ts'

/** Every payment that matches, over all pages. The next page is asked for when the one before has been read. */
export async function* eachPayment(
  calls: Pick<Calls<typeof PaymentSearchService>, 'searchPayments'>,
  filter: MessageInitShape<typeof SearchPaymentsRequestSchema> = {},
  options: CallOptions = {},
): AsyncGenerator<Payment, void, undefined> {
  for (let cursor: string | undefined, isFirst = true; isFirst || cursor !== undefined; isFirst = false) {
    // A cursor carries filters, order and limit.
    const page = await calls.searchPayments(cursor === undefined ? filter : { cursor }, options)
    yield* page.payments
    cursor = page.pagination?.nextCursor
  }
}

/** Every request that matches, over all pages. */
export async function* eachPaymentRequest(
  calls: Pick<Calls<typeof RequestsService>, 'listPaymentRequests'>,
  filter: MessageInitShape<typeof ListPaymentRequestsRequestSchema> = {},
  options: CallOptions = {},
): AsyncGenerator<PaymentRequest, void, undefined> {
  for (let cursor: string | undefined, isFirst = true; isFirst || cursor !== undefined; isFirst = false) {
    const page = await calls.listPaymentRequests(cursor === undefined ? filter : { cursor }, options)
    yield* page.requests
    cursor = page.pagination?.nextCursor
  }
}
