import type { Address } from './address.ts'
import { numberIn, valueIn } from './collections.ts'
import { type Decimal, subtractDecimals, ZERO } from './decimal.ts'
import type { Hex } from './hex.ts'

/** A merchant's own data, by key. */
export type Metadata = Readonly<Record<string, string>>

/** A payment request. All fields but `title`, `expiresAt`, `metadata` and `cancelledAt` are its terms, which never change. What was not given is absent, or undefined. */
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
  /** The only wallets that may pay, in order of address; at least one. Undefined: anybody may. */
  readonly allowedPayers?: readonly Address[] | undefined
  /** What payers read. */
  readonly title?: string | undefined
  /** Where payers go back to. */
  readonly returnUrl?: string | undefined
  /** Never without a pair. */
  readonly metadata?: Metadata | undefined
  readonly createdAt: Date
  /** From then on the request has no routes. */
  readonly expiresAt?: Date | undefined
  /** From then on the request has no routes, even before `expiresAt`. */
  readonly cancelledAt?: Date | undefined
}

/** What an update changes of a request. An undefined field stays; null clears it. */
export interface RequestUpdate {
  readonly title?: string | null | undefined
  readonly expiresAt?: Date | null | undefined
  /** Values by key; the empty one removes its key. */
  readonly metadata: Metadata
}

/** Whether metadata is the same, whatever the order of its keys. */
export function isSameMetadata(one: Metadata, other: Metadata): boolean {
  const keys = Object.keys(one)
  return keys.length === Object.keys(other).length && keys.every((key) => one[key] === other[key])
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

/** What payments and refunds make of a request, by rank: the first has rank 1. Stored as their rank. */
export const settledStatuses = ['OPEN', 'PARTIALLY_PAID', 'PENDING', 'PAID', 'REFUNDED'] as const
export type SettledStatus = (typeof settledStatuses)[number]

/** The statuses in which something is still to be paid. They have the lowest ranks. */
export const unpaidStatuses = ['OPEN', 'PARTIALLY_PAID'] as const satisfies readonly SettledStatus[]

/** All statuses. A request that is still to be paid is CANCELLED or EXPIRED once it takes no more payments. */
export const requestStatuses = [...settledStatuses, 'CANCELLED', 'EXPIRED'] as const
export type RequestStatus = (typeof requestStatuses)[number]

/** The number that a status is stored as. */
export const rankOfSettledStatus = numberIn(settledStatuses)

/** The status of a stored rank. */
export const settledStatusOfRank = valueIn(settledStatuses, 'status of a request has')

/** Whether something is still to be paid. */
export function isUnpaid(status: RequestStatus): status is (typeof unpaidStatuses)[number] {
  return (unpaidStatuses as readonly RequestStatus[]).includes(status)
}

/** The status of a request at a moment, from what is paid and from its terms. */
export function requestStatusAt(
  settled: SettledStatus,
  terms: Pick<PaymentRequest, 'expiresAt' | 'cancelledAt'>,
  nowMs: number,
): RequestStatus {
  if (!isUnpaid(settled)) return settled
  const closure = closureOf(terms, nowMs)
  if (closure === undefined) return settled
  return closure === 'REQUEST_CANCELLED' ? 'CANCELLED' : 'EXPIRED'
}

/** What payments and refunds make of a request. Amounts are in human units of its invoice currency. */
export interface SettledAmounts {
  readonly status: SettledStatus
  /** By final payments: before they cover the request, less what was returned of them; after that, all of it. */
  readonly paidAmount: Decimal
  /** By payments that are not final. */
  readonly pendingAmount: Decimal
  /** What all payments brought, less what was returned of them. */
  readonly heldAmount: Decimal
}

/** How a request stands at a moment. Amounts are in human units of its invoice currency. */
export interface RequestBalance extends Pick<SettledAmounts, 'paidAmount' | 'pendingAmount'> {
  readonly status: RequestStatus
  /** What is left to pay, 0 once payments cover the request. Pending payments count, or payers would pay twice. */
  readonly outstandingAmount: Decimal
  /** What is held beyond the amount. */
  readonly overpaidAmount: Decimal
}

/** How a request stands at a moment: a refund after it was covered never re-opens it. */
export function balanceAt(
  request: Pick<PaymentRequest, 'amount' | 'expiresAt' | 'cancelledAt'>,
  { status, paidAmount, pendingAmount, heldAmount }: SettledAmounts,
  nowMs: number,
): RequestBalance {
  const surplus = subtractDecimals(heldAmount, request.amount)
  return {
    status: requestStatusAt(status, request, nowMs),
    paidAmount,
    pendingAmount,
    outstandingAmount: isUnpaid(status) ? subtractDecimals(request.amount, heldAmount) : ZERO,
    overpaidAmount: surplus.units > 0n ? surplus : ZERO,
  }
}
