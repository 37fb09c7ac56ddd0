import type { MessageInitShape } from '@bufbuild/protobuf'
import type { ServiceImpl } from '@connectrpc/connect'
import { Payment_Status, Payment_Type } from '../../../gen/payments/v1/payment_pb.js'
import type { PaymentSearchService } from '../../../gen/payments/v1/payment_search_service_pb.js'
import {
  PaymentSummary_GroupBy,
  PaymentSummary_Measure,
  type PaymentSummary_SumSchema,
  type PaymentSummarySchema,
  type SummarizePaymentsRequest,
} from '../../../gen/payments/v1/payment_summary_pb.js'
import { type Address, formatAddress } from '../../domain/address.ts'
import type { PaymentReads } from '../../search/payment-reads.ts'
import type { GroupName, Measure } from '../../search/sql/read-summary.ts'
import type { OwnSum, PaymentSummary, SummaryGroup, SummaryInput } from '../../search/totals/summarize-payments.ts'
import { accountOf } from '../calls/call-context.ts'
import { filterInputOf, wordOf } from './payment-filter-input.ts'

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
    groupBy: request.groupBy.map((number): GroupName => wordOf('groupBy', nameByNumber, number)),
    sums: request.sums.map((number): Measure => wordOf('sums', measureByNumber, number)),
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

const numberByMeasure: Readonly<Record<Measure, PaymentSummary_Measure>> = {
  AMOUNTS: PaymentSummary_Measure.AMOUNTS,
  INVOICE_AMOUNTS: PaymentSummary_Measure.INVOICE_AMOUNTS,
  FEES: PaymentSummary_Measure.FEES,
  GAS: PaymentSummary_Measure.GAS,
  REFUNDS: PaymentSummary_Measure.REFUNDS,
  NET: PaymentSummary_Measure.NET,
}

const measureByNumber = new Map<number, Measure>(
  Object.entries(numberByMeasure).map(([measure, number]) => [number, measure as Measure]),
)

const nameByNumber = new Map<number, GroupName>(
  Object.entries(numberByName).map(([name, number]) => [number, name as GroupName]),
)

function summaryToProto({ groups, sums, ...whole }: PaymentSummary): MessageInitShape<typeof PaymentSummarySchema> {
  return { groups: groups.map(groupToProto), ...whole, sums: sums.map(sumToProto) }
}

function sumToProto({ measure, parts, ...sum }: OwnSum): MessageInitShape<typeof PaymentSummary_SumSchema> {
  return { ...sum, measure: numberByMeasure[measure], parts: [...parts] }
}

function groupToProto({ status, type, payer, payee, rest, sums, ...group }: SummaryGroup) {
  return {
    ...group,
    sums: sums.map(sumToProto),
    type: type && Payment_Type[type],
    status: status && Payment_Status[status],
    payer: addressText(payer),
    payee: addressText(payee),
    other: rest.map((name) => numberByName[name]),
  }
}

function addressText(address: Address | undefined): string | undefined {
  return address && formatAddress(address)
}
