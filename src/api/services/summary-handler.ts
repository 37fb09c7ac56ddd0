import type { MessageInitShape } from '@bufbuild/protobuf'
import type { ServiceImpl } from '@connectrpc/connect'
import { Payment_Status } from '../../../gen/payments/v1/payment_pb.js'
import type { PaymentSearchService } from '../../../gen/payments/v1/payment_search_service_pb.js'
import {
  PaymentSummary_GroupBy,
  type PaymentSummarySchema,
  type SummarizePaymentsRequest,
} from '../../../gen/payments/v1/payment_summary_pb.js'
import { type Address, formatAddress } from '../../domain/address.ts'
import type { GroupName } from '../../search/sql/read-summary.ts'
import type {
  PaymentSummary,
  SummarizePayments,
  SummaryGroup,
  SummaryInput,
} from '../../search/totals/summarize-payments.ts'
import { accountOf } from '../calls/call-context.ts'
import { filterInputOf, wordOf } from './payment-filter-input.ts'

/** Answers SummarizePayments. */
export function createSummaryHandlers(summarize: SummarizePayments) {
  return {
    async summarizePayments(request, context) {
      return summaryToProto(await summarize(accountOf(context), summaryInputOf(request), context.signal))
    },
  } satisfies Pick<ServiceImpl<typeof PaymentSearchService>, 'summarizePayments'>
}

export function summaryInputOf(request: SummarizePaymentsRequest): SummaryInput {
  return {
    ...filterInputOf(request),
    groupBy: request.groupBy.map((number): GroupName => wordOf('groupBy', nameByNumber, number)),
    timeZone: request.timeZone,
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
}

const nameByNumber = new Map<number, GroupName>(
  Object.entries(numberByName).map(([name, number]) => [number, name as GroupName]),
)

function summaryToProto({ groups, ...sums }: PaymentSummary): MessageInitShape<typeof PaymentSummarySchema> {
  return { groups: groups.map(groupToProto), ...sums }
}

function groupToProto({ status, payer, payee, rest, ...group }: SummaryGroup) {
  return {
    ...group,
    status: status && Payment_Status[status],
    payer: addressText(payer),
    payee: addressText(payee),
    other: rest.map((name) => numberByName[name]),
  }
}

function addressText(address: Address | undefined): string | undefined {
  return address && formatAddress(address)
}
