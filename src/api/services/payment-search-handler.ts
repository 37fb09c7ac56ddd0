import type { MessageInitShape } from '@bufbuild/protobuf'
import { timestampFromDate } from '@bufbuild/protobuf/wkt'
import type { ServiceImpl } from '@connectrpc/connect'
import { Payment_Status, Payment_Type } from '../../../gen/payments/v1/payment_pb.js'
import {
  type PaymentSearchService,
  PaymentSummary_GroupBy,
  PaymentSummary_Measure,
  type PaymentSummary_SumSchema,
  type PaymentSummarySchema,
  type SearchPaymentsRequest,
  SearchPaymentsRequest_IncludeTotal,
  SearchPaymentsRequest_SortBy,
  SearchPaymentsRequest_SortOrder,
  type SearchPaymentsResponseSchema,
  type SummarizePaymentsRequest,
  type WatchPaymentsRequest,
  WatchPaymentsResponse_Type,
  type WatchPaymentsResponseSchema,
} from '../../../gen/payments/v1/payment_search_service_pb.js'
import type { Caller } from '../../auth/caller.ts'
import { formatAddress } from '../../domain/address.ts'
import { requirePaymentId } from '../../domain/require-input.ts'
import { waybillError } from '../../errors/waybill-error.ts'
import type { SearchInput } from '../../search/filter/payment-filter.ts'
import type { PaymentPage } from '../../search/page/payment-search.ts'
import type { PaymentReads } from '../../search/payment-reads.ts'
import type { GroupName } from '../../search/sql/read-summary.ts'
import type { OwnSum, PaymentSummary, SummaryGroup, SummaryInput } from '../../search/totals/summarize-payments.ts'
import type { WatchMessage, WatchPayments } from '../../search/watch/watch-payments.ts'
import { accountOf, type CallContext, callerOf } from '../calls/call.ts'
import type { ServiceChecks } from '../calls/served-method.ts'
import { exportAnswers } from './export-forms.ts'
import { type FilterRequest, filterInputOf, memberOf, paginationOf, wordOf } from './payment-filter-input.ts'
import type { PaymentToProto } from './payment-to-proto.ts'

/** What watches ask of the search module and of the auth module. */
export interface WatchCalls {
  readonly watch: WatchPayments
  readonly issueTicket: (caller: Caller) => Promise<{ ticket: string; expiresAt: Date }>
}

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

/** Serves PaymentSearchService. */
export function createPaymentSearchHandlers(reads: PaymentReads, watches: WatchCalls, toProto: PaymentToProto) {
  return {
    async searchPayments(request, context) {
      const input = { ...inputOf(request), noCache: asksForNoCache(context) }
      return pageToProto(await reads.search(accountOf(context), input, context.signal), toProto)
    },
    async getPayment(request, context) {
      return toProto(await reads.getPayment(accountOf(context), request.id, context.signal))
    },
    async summarizePayments(request, context) {
      return summaryToProto(await reads.summarize(accountOf(context), summaryInputOf(request), context.signal))
    },
    async *exportPayments(request, context) {
      const input = { ...filterInputOf(request), after: request.after }
      for await (const page of reads.readExport(accountOf(context), input, context.signal)) {
        for (const answer of exportAnswers(page, toProto)) yield answer
      }
    },
    async *watchPayments(request, context) {
      const { signal, requestHeader } = context
      refuseTicketBesideKey(request, requestHeader)
      const watchCursor = requestHeader.get('last-event-id') || request.watchCursor
      const messages = watches.watch(accountOf(context), filterInputOf(request), { watchCursor, signal })
      for await (const message of messages) yield messageToProto(message, toProto)
    },
    async createWatchTicket(_, context) {
      const { ticket, expiresAt } = await watches.issueTicket(callerOf(context))
      return { ticket, expiresAt: timestampFromDate(expiresAt) }
    },
  } satisfies ServiceImpl<typeof PaymentSearchService>
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
  return {
    payments: payments.map(toProto),
    pagination: paginationOf(pagination),
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

function summaryInputOf(request: SummarizePaymentsRequest): SummaryInput {
  return {
    ...filterInputOf(request),
    groupBy: request.groupBy.map((number) => memberOf('groupBy', numberByName, number)),
    sums: request.sums.map((number) => memberOf('sums', PaymentSummary_Measure, number)),
    top: request.top,
    metadataKey: request.metadataKey,
  }
}

const numberByName: Readonly<Record<GroupName, PaymentSummary_GroupBy>> = {
  day: PaymentSummary_GroupBy.DAY,
  week: PaymentSummary_GroupBy.WEEK,
  month: PaymentSummary_GroupBy.MONTH,
  status: PaymentSummary_GroupBy.STATUS,
  network: PaymentSummary_GroupBy.NETWORK,
  currency: PaymentSummary_GroupBy.CURRENCY,
  payer: PaymentSummary_GroupBy.PAYER,
  payee: PaymentSummary_GroupBy.PAYEE,
  type: PaymentSummary_GroupBy.TYPE,
  invoiceCurrency: PaymentSummary_GroupBy.INVOICE_CURRENCY,
  metadata: PaymentSummary_GroupBy.METADATA,
}

function summaryToProto({ groups, sums, ...whole }: PaymentSummary): MessageInitShape<typeof PaymentSummarySchema> {
  return { groups: groups.map(groupToProto), ...whole, sums: sums.map(sumToProto) }
}

function sumToProto({ measure, parts, ...sum }: OwnSum): MessageInitShape<typeof PaymentSummary_SumSchema> {
  return { ...sum, measure: PaymentSummary_Measure[measure], parts: [...parts] }
}

function groupToProto({ status, type, payer, payee, metadata, rest, sums, ...group }: SummaryGroup) {
  return {
    ...group,
    metadataValue: metadata,
    sums: sums.map(sumToProto),
    type: type && Payment_Type[type],
    status: status && Payment_Status[status],
    payer: payer && formatAddress(payer),
    payee: payee && formatAddress(payee),
    other: rest.map((name) => numberByName[name]),
  }
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
