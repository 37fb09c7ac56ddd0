import { describe, expect, it } from 'vitest'
import { Payment_StatusSchema } from '../../../gen/payments/v1/payment_pb.js'
import { PaymentRequest_StatusSchema } from '../../../gen/payments/v1/payment_request_pb.js'
import {
  SearchPaymentsRequest_SortBySchema,
  SearchPaymentsRequest_SortOrderSchema,
  SearchPaymentsRequestSchema,
  SummarizePaymentsRequestSchema,
} from '../../../gen/payments/v1/payment_search_service_pb.js'
import {
  AddRefundWalletRequestSchema,
  CreatePaymentRequestRequestSchema,
  ListPaymentRequestsRequestSchema,
} from '../../../gen/payments/v1/requests_service_pb.js'
import { GetPaymentRoutesRequestSchema } from '../../../gen/payments/v1/routes_service_pb.js'
import { suggestOwnName, suggestOwnValue } from './other-names.ts'
import { usableNames } from './request-errors.ts'

const namesOf = ({ fields }: { fields: readonly { jsonName: string }[] }) => fields.map(({ jsonName }) => jsonName)

describe('a parameter of another API', () => {
  it.each([
    ['startDate', 'fromDate'],
    ['start_date', 'fromDate'],
    ['from', 'fromDate'],
    ['created_after', 'fromDate'],
    ['endDate', 'toDate'],
    ['to', 'toDate'],
    ['until', 'toDate'],
    ['offset', 'cursor'],
    ['page', 'cursor'],
    ['page[number]', 'cursor'],
    ['pageToken', 'cursor'],
    ['pageSize', 'limit'],
    ['per_page', 'limit'],
    ['page[size]', 'limit'],
    ['sort', 'sortBy'],
    ['order', 'sortOrder'],
    ['orderBy', 'sortBy'],
    ['address', 'walletAddress'],
    ['wallet', 'walletAddress'],
    ['transactionHash', 'txHash'],
    ['chainId', 'network'],
    ['token', 'currency'],
    ['sender', 'payer'],
    ['recipient', 'payee'],
    ['amount', 'minAmount'],
    ['invoiceId', 'reference'],
    ['search', 'q'],
    ['filter[status]', 'status'],
    ['status[]', 'status'],
    ['FROM_DATE', 'fromDate'],
  ])('%s of a search is %s', (given, ours) => {
    expect(suggestOwnName(given, namesOf(SearchPaymentsRequestSchema))).toMatch(`did you mean "${ours}"?`)
  })

  it.each([
    ['maxFee', 'maxFeeRate'],
    ['max_fee', 'maxFeeRate'],
    ['sender', 'wallet'],
    ['address', 'wallet'],
    ['walletAddress', undefined],
    ['chain', 'chains'],
    ['network', 'chains'],
    ['currency', 'tokens'],
    ['order_by', 'sort'],
    ['platformFee', 'feePercentage'],
    ['feeRecipient', 'feeAddress'],
    ['page', undefined],
    ['startDate', undefined],
  ])('%s of routes is %s', (given, ours) => {
    const suggestion = suggestOwnName(given, namesOf(GetPaymentRoutesRequestSchema))
    if (ours === undefined) expect(suggestion).toBeUndefined()
    else expect(suggestion).toMatch(`did you mean "${ours}"?`)
  })

  it.each([
    [SummarizePaymentsRequestSchema, 'interval', 'groupBy'],
    [SummarizePaymentsRequestSchema, 'tz', 'timeZone'],
    [CreatePaymentRequestRequestSchema, 'recipient', 'payee'],
    [CreatePaymentRequestRequestSchema, 'chain', 'network'],
    [CreatePaymentRequestRequestSchema, 'currency', 'invoiceCurrency'],
    [CreatePaymentRequestRequestSchema, 'value', 'amount'],
  ] as const)('of %s: %s is %s', (desc, given, ours) => {
    expect(suggestOwnName(given, namesOf(desc))).toMatch(`did you mean "${ours}"?`)
  })

  it.each([
    [CreatePaymentRequestRequestSchema, 'payer', 'a request names no payer: anybody may pay it'],
    [ListPaymentRequestsRequestSchema, 'payer', 'a request names no payer: anybody may pay it'],
    [ListPaymentRequestsRequestSchema, 'walletAddress', 'did you mean "payee"?'],
    [ListPaymentRequestsRequestSchema, 'paymentReference', 'GET /v1/request/{paymentReference} finds that one request'],
    [GetPaymentRoutesRequestSchema, 'payer', 'did you mean "wallet"?'],
    [AddRefundWalletRequestSchema, 'payer', undefined],
    [CreatePaymentRequestRequestSchema, 'paymentReference', undefined],
  ] as const)('of %s: %s, whose nearest name would be misleading: %s', (desc, given, says) => {
    expect(suggestOwnName(given, namesOf(desc))).toBe(says)
  })

  it.each([
    ['excludeStatus', 'exclude.status'],
    ['exclude_status', 'exclude.status'],
    ['exclude[network]', 'exclude.network'],
    ['notStatus', 'exclude.status'],
    ['status[not]', 'exclude.status'],
    ['status!', 'exclude.status'],
    ['!payer', 'exclude.payer'],
    ['currency_ne', 'exclude.currency'],
    ['referenceStartsWith', 'referencePrefix'],
  ])('%s of a query is %s, and never its opposite', (given, ours) => {
    const inQuery = [
      'status',
      'payer',
      'currency',
      'network',
      'exclude.status',
      'exclude.network',
      'exclude.currency',
      'exclude.payer',
      'referencePrefix',
    ]
    expect(suggestOwnName(given, inQuery)).toBe(`did you mean "${ours}"?`)
  })

  it.each(['excludeStatus', 'notStatus', 'status_ne', '!payee'])('%s of a message is exclude', (given) => {
    expect(suggestOwnName(given, namesOf(SearchPaymentsRequestSchema))).toBe('did you mean "exclude"?')
  })

  it('comes with a note if ours works differently', () => {
    expect(suggestOwnName('page', ['cursor'])).toBe(
      'did you mean "cursor"? pages are not numbered: send the nextCursor of the page before',
    )
  })

  it.each(['nonsense', '', '__proto__', 'constructor', 'toString', 'page'.repeat(100_000), '[]'])(
    'is none: %.20s',
    (given) => {
      expect(suggestOwnName(given, namesOf(SearchPaymentsRequestSchema))).toBeUndefined()
    },
  )
})

describe('a value of another API', () => {
  const [payments, requests] = [usableNames(Payment_StatusSchema), usableNames(PaymentRequest_StatusSchema)]
  it.each([
    [payments, 'paid', 'CONFIRMED'],
    [payments, 'completed', 'CONFIRMED'],
    [payments, 'success', 'CONFIRMED'],
    [payments, 'processing', 'PENDING'],
    [payments, 'partially_paid', 'PARTIAL'],
    [payments, 'open', 'PENDING'],
    [payments, 'error', 'FAILED'],
    [payments, 'confirmed', 'CONFIRMED'],
    [requests, 'confirmed', 'PAID'],
    [requests, 'completed', 'PAID'],
    [requests, 'unpaid', 'OPEN'],
    [requests, 'partial', 'PARTIALLY_PAID'],
    [requests, 'failed', undefined],
    [payments, 'cancelled', 'FAILED'],
    [requests, 'canceled', 'CANCELLED'],
    [requests, 'overdue', 'EXPIRED'],
    [usableNames(SearchPaymentsRequest_SortBySchema), 'createdAt', 'DATE'],
    [usableNames(SearchPaymentsRequest_SortOrderSchema), 'descending', 'DESC'],
    [payments, 'nonsense', undefined],
    [payments, '', undefined],
  ] as const)('of %s: %s is %s', (known, given, ours) => {
    const suggestion = suggestOwnValue(given, known)
    if (ours === undefined) expect(suggestion).toBeUndefined()
    else expect(suggestion).toMatch(`did you mean "${ours}"?`)
  })
})
