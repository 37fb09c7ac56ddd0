import type { PaymentStatus, PaymentType } from '../../domain/payment.ts'

export type SortBy = 'date' | 'amount' | 'status'
export type SortOrder = 'asc' | 'desc'
export type IncludeTotal = 'none' | 'estimated' | 'exact'

/**
 * A search as it came over the wire: strings not yet parsed, enums already decoded. Undefined was not sent. An empty list counts as not
 * sent, because protobuf cannot tell the two apart.
 */
export interface SearchInput {
  readonly fromDate?: string | undefined
  readonly toDate?: string | undefined
  readonly minAmount?: string | undefined
  readonly maxAmount?: string | undefined
  readonly currency?: readonly string[] | undefined
  readonly paymentCurrency?: readonly string[] | undefined
  readonly invoiceCurrency?: readonly string[] | undefined
  readonly status?: readonly PaymentStatus[] | undefined
  readonly type?: readonly PaymentType[] | undefined
  readonly payer?: readonly string[] | undefined
  readonly payee?: readonly string[] | undefined
  readonly walletAddress?: readonly string[] | undefined
  readonly txHash?: readonly string[] | undefined
  readonly requestId?: readonly string[] | undefined
  readonly paymentReference?: readonly string[] | undefined
  readonly reference?: readonly string[] | undefined
  readonly network?: readonly string[] | undefined
  readonly q?: string | undefined
  readonly sortBy?: SortBy | undefined
  readonly sortOrder?: SortOrder | undefined
  readonly limit?: number | undefined
  readonly cursor?: string | undefined
  readonly includeTotal?: IncludeTotal | undefined
}
