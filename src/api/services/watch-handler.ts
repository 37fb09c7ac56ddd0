import type { MessageInitShape } from '@bufbuild/protobuf'
import { timestampFromDate } from '@bufbuild/protobuf/wkt'
import type { ServiceImpl } from '@connectrpc/connect'
import type { PaymentSearchService } from '../../../gen/payments/v1/payment_search_service_pb.js'
import {
  type WatchPaymentsRequest,
  WatchPaymentsResponse_Type,
  type WatchPaymentsResponseSchema,
} from '../../../gen/payments/v1/payment_watch_pb.js'
import type { Caller } from '../../auth/caller.ts'
import { waybillError } from '../../errors/waybill-error.ts'
import type { WatchMessage, WatchPayments } from '../../search/watch/watch-payments.ts'
import { accountOf, callerOf } from '../calls/call-context.ts'
import { filterInputOf } from './payment-filter-input.ts'
import type { PaymentToProto } from './payment-to-proto.ts'

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
