import type { Address } from './address.ts'
import {
  addDecimals,
  compareDecimals,
  type Decimal,
  formatDecimal,
  readStoredDecimal,
  subtractDecimals,
} from './decimal.ts'
import type { Hex } from './hex.ts'
import type { PaymentStatus } from './payment.ts'

/** A request. All but `cancelledAt` are its terms, which never change. */
export interface PaymentRequest {
  /** `01` and 64 lower-case digits. */
  readonly requestId: string
  /** 16 lower-case digits. */
  readonly salt: string
  readonly paymentReference: Hex
  readonly payee: Address
  /** What the payee is to receive, in human units of `invoiceCurrency`. */
  readonly amount: string
  /** Currency id, or ISO 4217 code. */
  readonly invoiceCurrency: string
  /** Currency id. */
  readonly paymentCurrency: string
  /** Canonical chain name. */
  readonly network: string
  readonly reference?: string
  readonly refundAddress?: Address
  readonly createdAt: Date
  /** From this moment on it has no routes. */
  readonly expiresAt?: Date
  /** From this moment on it has no routes, whatever its terms say. */
  readonly cancelledAt?: Date
}

/** Why a request has no routes whatever the wallet holds and however far it is paid; undefined while it is open to payments. */
export function closureOf(
  { expiresAt, cancelledAt }: Pick<PaymentRequest, 'expiresAt' | 'cancelledAt'>,
  nowMs: number,
): 'REQUEST_CANCELLED' | 'REQUEST_EXPIRED' | undefined {
  if (cancelledAt !== undefined) return 'REQUEST_CANCELLED'
  return expiresAt !== undefined && expiresAt.getTime() <= nowMs ? 'REQUEST_EXPIRED' : undefined
}

export const requestStatuses = ['OPEN', 'PARTIALLY_PAID', 'PENDING', 'PAID', 'REFUNDED'] as const
export type RequestStatus = (typeof requestStatuses)[number]

/** The number that a status is stored as. */
export function rankOfRequestStatus(status: RequestStatus): number {
  return requestStatuses.indexOf(status) + 1
}

/** How far a request is paid; decimal strings in units of its invoice currency. */
export interface RequestBalance {
  readonly status: RequestStatus
  /** By final payments. */
  readonly paidAmount: string
  /** By payments that are not final. */
  readonly pendingAmount: string
  /** Expected less both, never below 0: whoever pays twice because the first is not final yet loses money. */
  readonly outstandingAmount: string
  /** Received beyond the amount and not returned. */
  readonly overpaidAmount: string
}

/** The sums over everything counted for a request and not reorged out, in units of its invoice currency. */
export interface CountedSums {
  readonly final: string
  readonly pending: string
  /** What went back of the surplus; what was laid on payments is no part of it. */
  readonly refunded: string
  /** Whether any payment counts for something, and all that do were fully returned. */
  readonly allReturned: boolean
}

/** A payment of a request, as far as its request's status follows from it. */
export interface CountedPayment {
  readonly status: PaymentStatus
  readonly final: boolean
  /** In the invoice currency, a decimal string: what it counts for. */
  readonly counted: string
}

/**
 * How far a request is paid, by its payments.
 *
 * @param amount - what is expected, a decimal string
 */
export function requestStatusOf(amount: string, payments: readonly CountedPayment[]): RequestStatus {
  const counting = payments
    .filter(({ status }) => status !== 'FAILED')
    .map((payment) => ({ ...payment, worth: readStoredDecimal(payment.counted) }))
    .filter(({ worth }) => worth.units > 0n)
  const sumOf = (some: typeof counting) => some.reduce((sum, { worth }) => addDecimals(sum, worth), ZERO)
  const allReturned = counting.length > 0 && counting.every(({ status }) => status === 'REFUNDED')
  const final = sumOf(counting.filter((payment) => payment.final))
  return statusOf(readStoredDecimal(amount), final, sumOf(counting), allReturned)
}

const ZERO: Decimal = { units: 0n, places: 0 }

function aboveZero(value: Decimal): Decimal {
  return compareDecimals(value, ZERO) > 0 ? value : ZERO
}

/**
 * How far a request is paid. Fees never count, there is no tolerance, and a refund never re-opens a request.
 *
 * @param amount - what is expected, a decimal string
 */
export function balanceOf(amount: string, sums: CountedSums): RequestBalance {
  const expected = readStoredDecimal(amount)
  const final = readStoredDecimal(sums.final)
  const counted = addDecimals(final, readStoredDecimal(sums.pending))
  const surplus = subtractDecimals(counted, expected)
  return {
    status: statusOf(expected, final, counted, sums.allReturned),
    paidAmount: formatDecimal(final),
    pendingAmount: sums.pending,
    outstandingAmount: formatDecimal(aboveZero(subtractDecimals(expected, counted))),
    overpaidAmount: formatDecimal(aboveZero(subtractDecimals(surplus, readStoredDecimal(sums.refunded)))),
  }
}

function statusOf(expected: Decimal, final: Decimal, counted: Decimal, allReturned: boolean): RequestStatus {
  if (allReturned) return 'REFUNDED'
  if (compareDecimals(final, expected) >= 0) return 'PAID'
  if (compareDecimals(counted, expected) >= 0) return 'PENDING'
  return compareDecimals(counted, ZERO) > 0 ? 'PARTIALLY_PAID' : 'OPEN'
}
