import type { MessageInitShape } from '@bufbuild/protobuf'
import { timestampFromDate } from '@bufbuild/protobuf/wkt'
import type { ServiceImpl } from '@connectrpc/connect'
import { Pagination_TotalRelation } from '../../../gen/payments/v1/pagination_pb.js'
import {
  type PaymentSearchService,
  type SearchPaymentsRequest,
  SearchPaymentsRequest_IncludeTotal,
  SearchPaymentsRequest_SortBy,
  SearchPaymentsRequest_SortOrder,
  type SearchPaymentsResponseSchema,
  type WatchPaymentsRequest,
  WatchPaymentsResponse_Type,
  type WatchPaymentsResponseSchema,
} from '../../../gen/payments/v1/payment_search_service_pb.js'
import type { Caller } from '../../auth/caller.ts'
import { requirePaymentId } from '../../domain/require-input.ts'
import { waybillError } from '../../errors/waybill-error.ts'
import type { SearchInput } from '../../search/filter/payment-filter.ts'
import type { PaymentPage } from '../../search/page/payment-search.ts'
import type { PaymentReads } from '../../search/payment-reads.ts'
import type { WatchMessage, WatchPayments } from '../../search/watch/watch-payments.ts'
import { accountOf, type CallContext, callerOf } from '../calls/call-context.ts'
import type { ServiceChecks } from '../calls/served-method.ts'
import { type FilterRequest, filterInputOf, wordOf } from './payment-filter-input.ts'
import { createPaymentToProto, type PaymentToProto } from './payment-to-proto.ts'
import { summaryInputOf } from './summary-handler.ts'

/** The checks of PaymentSearchService. */
export function createPaymentChecks(calls: PaymentReads): ServiceChecks<typeof PaymentSearchService> {
  const checkFilter = (request: FilterRequest & { readonly after?: string | undefined }, context: CallContext) =>
    calls.check(accountOf(context), { ...filterInputOf(request), after: request.after }, context.signal)
  return {
    searchPayments: (request, context) => calls.check(accountOf(context), inputOf(request), context.signal),
    getPayment: ({ id }) => requirePaymentId('id', id),
    summarizePayments: (request, context) =>
      calls.checkSummary(accountOf(context), summaryInputOf(request), context.signal),
    exportPayments: checkFilter,
    watchPayments: checkFilter,
  }
}

/** Answers SearchPayments and GetPayment. */
export function createPaymentSearchHandlers(
  calls: Pick<PaymentReads, 'search' | 'getPayment'>,
  toProto: PaymentToProto = createPaymentToProto(),
) {
  return {
    async searchPayments(request, context) {
      const input = { ...inputOf(request), noCache: asksForNoCache(context) }
      return pageToProto(await calls.search(accountOf(context), input, context.signal), toProto)
    },
    async getPayment(request, context) {
      return toProto(await calls.getPayment(accountOf(context), request.id, context.signal))
    },
  } satisfies Pick<ServiceImpl<typeof PaymentSearchService>, 'searchPayments' | 'getPayment'>
}

function inputOf(request: SearchPaymentsRequest): SearchInput {
  return {
    ...filterInputOf(request),
    sortBy: wordOf('sortBy', SearchPaymentsRequest_SortBy, request.sortBy),
    sortOrder: wordOf('sortOrder', SearchPaymentsRequest_SortOrder, request.sortOrder),
    limit: request.limit,
    cursor: request.cursor,
    includeTotal: wordOf('includeTotal', SearchPaymentsRequest_IncludeTotal, request.includeTotal),
  }
}

/** RFC 9111, 5.2.1.4. */
function asksForNoCache({ requestHeader }: CallContext): boolean {
  return /\bno-cache\b/i.test(requestHeader.get('cache-control') ?? '')
}

function pageToProto(
  { payments, pagination, asOf, removed, completeTo, watchCursor }: PaymentPage,
  toProto: PaymentToProto,
): MessageInitShape<typeof SearchPaymentsResponseSchema> {
  const { limit, nextCursor, prevCursor, total } = pagination
  return {
    payments: payments.map(toProto),
    pagination: {
      limit,
      hasMore: nextCursor !== undefined,
      nextCursor,
      prevCursor,
      total: total?.count,
      totalRelation: total && Pagination_TotalRelation[total.relation],
    },
    asOf: asOf.map(({ network, block, time }) => ({
      network,
      block,
      time: time === undefined ? undefined : timestampFromDate(time),
    })),
    removed: removed.map(({ id, changedAt }) => ({ id, changedAt: timestampFromDate(changedAt) })),
    completeTo: completeTo && timestampFromDate(completeTo),
    watchCursor,
  }
}

/** What the handlers ask of the search module and of the auth module. */
export interface WatchCalls {
  readonly watch: WatchPayments
  issueTicket(caller: Caller): Promise<{ ticket: string; expiresAt: Date }>
}

/** Answers WatchPayments and CreateWatchTicket. */
export function createWatchHandlers(calls: WatchCalls, toProto: PaymentToProto) {
  return {
    async *watchPayments(request, context) {
      const { signal, requestHeader } = context
      refuseTicketBesideKey(request, requestHeader)
      const watchCursor = requestHeader.get('last-event-id') || request.watchCursor
      const messages = calls.watch(accountOf(context), filterInputOf(request), { watchCursor, signal })
      for await (const message of messages) yield messageToProto(message, toProto)
    },
    async createWatchTicket(_, context) {
      const { ticket, expiresAt } = await calls.issueTicket(callerOf(context))
      return { ticket, expiresAt: timestampFromDate(expiresAt) }
    },
  } satisfies Pick<ServiceImpl<typeof PaymentSearchService>, 'watchPayments' | 'createWatchTicket'>
}

/** Refuses a ticket that is sent beside a key: it would not be checked, and would stay valid for others. */
function refuseTicketBesideKey({ ticket }: WatchPaymentsRequest, requestHeader: Headers): void {
  if (ticket === undefined || !requestHeader.has('x-api-key')) return
  throw waybillError('INVALID_FIELD', {
    field: 'ticket',
    detail: 'a ticket replaces the key, and a key was sent',
  })
}

function messageToProto(
  message: WatchMessage,
  toProto: PaymentToProto,
): MessageInitShape<typeof WatchPaymentsResponseSchema> {
  const { type, watchCursor, at } = message
  const common = { type: WatchPaymentsResponse_Type[type], watchCursor, at: timestampFromDate(at) }
  switch (message.type) {
    case 'HEARTBEAT':
      return common
    case 'REMOVED':
      return { ...common, id: message.id, payment: message.payment && toProto(message.payment) }
    case 'ADDED':
    case 'UPDATED':
      return { ...common, id: message.payment.id, payment: toProto(message.payment) }
  }
}

/** The id of a server-sent event, which a browser sends back as `Last-Event-ID`. */
export function watchEventId(answer: MessageInitShape<typeof WatchPaymentsResponseSchema>): string | undefined {
  return answer.watchCursor
}
