import type { Address } from './address.ts'
import { addDecimals, compareDecimals, type Decimal, subtractDecimals, sumDecimals, ZERO } from './decimal.ts'
import type { Hex } from './hex.ts'
import type { PaymentStatus } from './payment.ts'

/** A payment request. All fields but `cancelledAt` are its terms, which never change. What was not given is absent, or undefined. */
export interface PaymentRequest {
  /** `01` and 64 lower-case digits. */
  readonly requestId: string
  /** 16 lower-case digits. */
  readonly salt: string
  readonly paymentReference: Hex
  readonly payee: Address
  /** What the payee is to receive, in human units of `invoiceCurrency`. */
  readonly amount: Decimal
  /** Currency id, or ISO 4217 code. */
  readonly invoiceCurrency: string
  /** Currency id. */
  readonly paymentCurrency: string
  /** Canonical chain name. */
  readonly network: string
  readonly reference?: string | undefined
  readonly refundAddress?: Address | undefined
  readonly createdAt: Date
  /** From then on the request has no routes. */
  readonly expiresAt?: Date | undefined
  /** From then on the request has no routes, even before `expiresAt`. */
  readonly cancelledAt?: Date | undefined
}

/**
 * Why a request has no routes, whatever the wallet holds and however much is paid.
 *
 * @returns undefined while the request is open to payments
 */
export function closureOf(
  { expiresAt, cancelledAt }: Pick<PaymentRequest, 'expiresAt' | 'cancelledAt'>,
  nowMs: number,
): 'REQUEST_CANCELLED' | 'REQUEST_EXPIRED' | undefined {
  if (cancelledAt !== undefined) return 'REQUEST_CANCELLED'
  return expiresAt !== undefined && expiresAt.getTime() <= nowMs ? 'REQUEST_EXPIRED' : undefined
}

/** All statuses by rank: the first has rank 1. Stored as their rank. */
export const requestStatuses = ['OPEN', 'PARTIALLY_PAID', 'PENDING', 'PAID', 'REFUNDED'] as const
export type RequestStatus = (typeof requestStatuses)[number]

/** The statuses in which something is still to be paid. They have the lowest ranks. */
export const unpaidStatuses: readonly RequestStatus[] = ['OPEN', 'PARTIALLY_PAID']

/** The number that a status is stored as. */
export function rankOfRequestStatus(status: RequestStatus): number {
  return requestStatuses.indexOf(status) + 1
}

/** How much of a request is paid, in units of its invoice currency. */
export interface RequestBalance {
  readonly status: RequestStatus
  /** By final payments. */
  readonly paidAmount: Decimal
  /** By payments that are not final. */
  readonly pendingAmount: Decimal
  /** Expected less both, never below 0. Pending payments count, or payers would pay twice. */
  readonly outstandingAmount: Decimal
  /** Received beyond the amount and not returned. */
  readonly overpaidAmount: Decimal
}

/** Sums of a request's counted payments, in units of its invoice currency. Payments that a reorg removed do not count. */
export interface CountedSums {
  readonly final: Decimal
  readonly pending: Decimal
  /** What was returned of the surplus. Refunds that were assigned to payments are not in it. */
  readonly surplusReturned: Decimal
  /** Whether any payment counts for more than 0, and all such payments were fully returned. */
  readonly allReturned: boolean
}

/** What the status of a request needs to know of each of its payments. */
export interface CountedPayment {
  readonly status: PaymentStatus
  readonly final: boolean
  /** What it counts for, in the invoice currency. */
  readonly counted: Decimal
}

/** The status of a request, from all its payments. */
export function requestStatusOf(expected: Decimal, payments: readonly CountedPayment[]): RequestStatus {
  const counting = payments.filter(({ status, counted }) => status !== 'FAILED' && counted.units > 0n)
  const sumOf = (some: typeof counting) => sumDecimals(some.map(({ counted }) => counted))
  const allReturned = counting.length > 0 && counting.every(({ status }) => status === 'REFUNDED')
  const final = sumOf(counting.filter((payment) => payment.final))
  return statusOf(expected, { final, counted: sumOf(counting), allReturned })
}

/**
 * Whether more was received for a request than it asked for, and not returned.
 *
 * @param surplusReturned - what was returned of the surplus
 */
export function isOverpaid(expected: Decimal, payments: readonly CountedPayment[], surplusReturned: Decimal): boolean {
  const counting = payments.filter(({ status }) => status !== 'FAILED')
  const counted = sumDecimals(counting.map((payment) => payment.counted))
  return compareDecimals(counted, addDecimals(expected, surplusReturned)) > 0
}

/** How much of a request is paid, from the sums of its payments. Fees never count, there is no tolerance, and a refund never re-opens a request. */
export function balanceOf(
  expected: Decimal,
  { final, pending, surplusReturned, allReturned }: CountedSums,
): RequestBalance {
  const counted = addDecimals(final, pending)
  const surplus = subtractDecimals(counted, expected)
  return {
    status: statusOf(expected, { final, counted, allReturned }),
    paidAmount: final,
    pendingAmount: pending,
    outstandingAmount: atLeastZero(subtractDecimals(expected, counted)),
    overpaidAmount: atLeastZero(subtractDecimals(surplus, surplusReturned)),
  }
}

function atLeastZero(value: Decimal): Decimal {
  return value.units > 0n ? value : ZERO
}

interface Sums {
  readonly final: Decimal
  /** Final and pending. */
  readonly counted: Decimal
  readonly allReturned: boolean
}

function statusOf(expected: Decimal, { final, counted, allReturned }: Sums): RequestStatus {
  if (allReturned) return 'REFUNDED'
  if (compareDecimals(final, expected) >= 0) return 'PAID'
  if (compareDecimals(counted, expected) >= 0) return 'PENDING'
  return counted.units > 0n ? 'PARTIALLY_PAID' : 'OPEN'
}
