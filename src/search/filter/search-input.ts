import type { PaymentStatus, PaymentType } from '../../domain/payment.ts'

export const sortNames = ['date', 'amount', 'status'] as const
export type SortBy = (typeof sortNames)[number]
export type SortOrder = 'asc' | 'desc'
export type IncludeTotal = 'none' | 'estimated' | 'exact'

/**
 * A search as it came over the wire: texts not yet read, closed sets already known. What is absent was not given; neither was an
 * empty list, which no protocol tells from an absent one.
 */
export interface SearchInput {
  readonly fromDate?: string | undefined
  readonly toDate?: string | undefined
  readonly minAmount?: string | undefined
  readonly maxAmount?: string | undefined
  readonly currency?: readonly string[]
  readonly paymentCurrency?: readonly string[]
  readonly invoiceCurrency?: readonly string[]
  readonly status?: readonly PaymentStatus[]
  readonly type?: readonly PaymentType[]
  readonly payer?: readonly string[]
  readonly payee?: readonly string[]
  readonly walletAddress?: readonly string[]
  readonly txHash?: readonly string[]
  readonly requestId?: readonly string[]
  readonly paymentReference?: readonly string[]
  readonly reference?: readonly string[]
  readonly network?: readonly string[]
  readonly q?: string | undefined
  readonly sortBy?: SortBy | undefined
  readonly sortOrder?: SortOrder | undefined
  readonly limit?: number | undefined
  readonly cursor?: string | undefined
  readonly includeTotal?: IncludeTotal | undefined
}
