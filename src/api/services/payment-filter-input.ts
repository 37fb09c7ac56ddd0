import { Payment_Status, Payment_Type } from '../../../gen/payments/v1/payment_pb.js'
import type { SearchPaymentsRequest } from '../../../gen/payments/v1/payment_search_service_pb.js'
import { suggestName } from '../../domain/nearest.ts'
import { type PaymentStatus, type PaymentType, paymentStatuses, paymentTypes } from '../../domain/payment.ts'
import { waybillError } from '../../errors/waybill-error.ts'
import type { FilterValues } from '../../search/filter/payment-filter.ts'
import type { SearchInput } from '../../search/filter/search-input.ts'

/** The filters that all requests about payments share, with the same names and numbers. */
export type FilterFields = Pick<SearchPaymentsRequest, keyof FilterValues>

/** The filters of a search as they were sent. */
export type FilterInput = Pick<SearchInput, keyof FilterValues>

/** The names that the search room uses for the numbers of the enums. */
const statusByNumber = new Map<number, PaymentStatus>(paymentStatuses.map((status) => [Payment_Status[status], status]))
const typeByNumber = new Map<number, PaymentType>(paymentTypes.map((type) => [Payment_Type[type], type]))

/** Reads the filters of a request about payments. */
export function filterInputOf(request: FilterFields): FilterInput {
  return {
    fromDate: request.fromDate,
    toDate: request.toDate,
    minAmount: request.minAmount,
    maxAmount: request.maxAmount,
    currency: request.currency,
    paymentCurrency: request.paymentCurrency,
    invoiceCurrency: request.invoiceCurrency,
    status: request.status.map((number): PaymentStatus => wordOf('status', statusByNumber, number)),
    type: request.type.map((number): PaymentType => wordOf('type', typeByNumber, number)),
    payer: request.payer,
    payee: request.payee,
    walletAddress: request.walletAddress,
    txHash: request.txHash,
    requestId: request.requestId,
    paymentReference: request.paymentReference,
    reference: request.reference,
    network: request.network,
    q: request.q,
  }
}

/** The name for a number of an enum. @throws WaybillError UNKNOWN_ENUM_VALUE for a number that is not a member, which is never ignored */
export function wordOf<W extends string | undefined>(field: string, words: ReadonlyMap<number, W>, number: number): W {
  if (words.has(number)) return words.get(number) as W
  const known = [...words.values()].filter((word) => word !== undefined).map((word) => word.toUpperCase())
  throw waybillError('UNKNOWN_ENUM_VALUE', { field, value: number, suggestion: suggestName(String(number), known) })
}
