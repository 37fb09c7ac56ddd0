import type { MessageInitShape } from '@bufbuild/protobuf'
import type { ServiceImpl } from '@connectrpc/connect'
import { Payment_Status, Payment_Type } from '../../../gen/payments/v1/payment_pb.js'
import {
  type PaymentSearchService,
  PaymentSummary_GroupBy,
  PaymentSummary_Measure,
  type PaymentSummary_SumSchema,
  type PaymentSummarySchema,
  type SummarizePaymentsRequest,
} from '../../../gen/payments/v1/payment_search_service_pb.js'
import { formatAddress } from '../../domain/address.ts'
import type { PaymentReads } from '../../search/payment-reads.ts'
import type { GroupName } from '../../search/sql/read-summary.ts'
import type { OwnSum, PaymentSummary, SummaryGroup, SummaryInput } from '../../search/totals/summarize-payments.ts'
import { accountOf } from '../calls/call-context.ts'
import { filterInputOf, memberOf } from './payment-filter-input.ts'

/** Answers SummarizePayments. */
export function createSummaryHandlers(calls: Pick<PaymentReads, 'summarize'>) {
  return {
    async summarizePayments(request, context) {
      return summaryToProto(await calls.summarize(accountOf(context), summaryInputOf(request), context.signal))
    },
  } satisfies Pick<ServiceImpl<typeof PaymentSearchService>, 'summarizePayments'>
}

export function summaryInputOf(request: SummarizePaymentsRequest): SummaryInput {
  return {
    ...filterInputOf(request),
    groupBy: request.groupBy.map((number) => memberOf('groupBy', numberByName, number)),
    sums: request.sums.map((number) => memberOf('sums', PaymentSummary_Measure, number)),
    top: request.top,
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
}

function summaryToProto({ groups, sums, ...whole }: PaymentSummary): MessageInitShape<typeof PaymentSummarySchema> {
  return { groups: groups.map(groupToProto), ...whole, sums: sums.map(sumToProto) }
}

function sumToProto({ measure, parts, ...sum }: OwnSum): MessageInitShape<typeof PaymentSummary_SumSchema> {
  return { ...sum, measure: PaymentSummary_Measure[measure], parts: [...parts] }
}

function groupToProto({ status, type, payer, payee, rest, sums, ...group }: SummaryGroup) {
  return {
    ...group,
    sums: sums.map(sumToProto),
    type: type && Payment_Type[type],
    status: status && Payment_Status[status],
    payer: payer && formatAddress(payer),
    payee: payee && formatAddress(payee),
    other: rest.map((name) => numberByName[name]),
  }
}
