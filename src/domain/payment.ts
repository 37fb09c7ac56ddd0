import type { Address } from './address.ts'
import { numberIn, valueIn } from './collections.ts'
import type { DecimalString } from './decimal.ts'
import type { Hex } from './hex.ts'
import type { Metadata } from './payment-request.ts'

/** All statuses by rank: the first has rank 1. Stored and sorted by rank. */
export const paymentStatuses = ['PENDING', 'PARTIAL', 'CONFIRMED', 'REFUNDED', 'FAILED'] as const
export type PaymentStatus = (typeof paymentStatuses)[number]

/** All types. Stored as their place in this list, counted from 1. */
export const paymentTypes = ['DIRECT', 'CONVERSION', 'CROSSCHAIN', 'RECURRING'] as const
export type PaymentType = (typeof paymentTypes)[number]

export const feeTypes = ['GAS', 'PLATFORM', 'PROTOCOL', 'SWAP', 'CROSSCHAIN'] as const
export type FeeType = (typeof feeTypes)[number]

export const feeStages = ['SENDING', 'PROXYING', 'RECEIVING', 'REFUNDING', 'OVERALL'] as const
export type FeeStage = (typeof feeStages)[number]

/** What may be said against a payment. Stored as bits, from the lowest. */
export const paymentMarks = ['PAYER_NOT_ALLOWED', 'PAYER_SCREENED', 'SCREENING_UNKNOWN'] as const
export type PaymentMark = (typeof paymentMarks)[number]

/** A stored payment. Amounts are in human units; `timestamp` is in whole seconds. What is unknown is absent, or undefined. */
export interface Payment {
  /** UUID in lower case. */
  readonly id: string
  readonly status: PaymentStatus
  readonly type?: PaymentType | undefined
  readonly timestamp: Date
  readonly updatedAt: Date
  /**
   * The stamp of the transaction that last changed the payment, which no later change of the account shares. Absent before it is stored.
   */
  readonly changedAt?: Date | undefined
  readonly amount: DecimalString
  /** Currency id. */
  readonly currency: string
  readonly amountInUsd?: DecimalString | undefined
  /** What it counts for in its request, in `invoiceCurrency`. */
  readonly invoiceAmount?: DecimalString | undefined
  /** Currency id or ISO 4217 code. */
  readonly invoiceCurrency?: string | undefined
  /** Canonical name of the destination chain, where the proxy's event is. */
  readonly network: string
  /** CAIP-2. */
  readonly chainId?: string | undefined
  readonly txHash?: Hex | undefined
  readonly blockNumber?: bigint | undefined
  readonly eventIndex?: number | undefined
  readonly sourceNetwork?: string | undefined
  readonly sourceTxHash?: Hex | undefined
  readonly payer?: Address | undefined
  readonly payee?: Address | undefined
  readonly initiator?: Address | undefined
  readonly tokenAddress?: Address | undefined
  /** `01` and 64 digits. */
  readonly requestId?: string | undefined
  readonly paymentReference?: Hex | undefined
  readonly reference?: string | undefined
  readonly fees: readonly PaymentFee[]
  readonly exchangeRates: readonly ExchangeRate[]
  readonly gas?: PaymentGas | undefined
  readonly refunds: readonly PaymentRefund[]
  readonly refundedAmount: DecimalString
  readonly statusHistory: readonly StatusChange[]
  /** Whether it counts nowhere, because its chain is followed and what was read there counts. Absent where it counts. */
  readonly superseded?: true | undefined
  readonly marks: readonly PaymentMark[]
  /** Of its request; of an imported payment without one, that of its line. */
  readonly metadata?: Metadata | undefined
  /** Stored once the payment is final; counted at read before that. */
  readonly confirmations?: number | undefined
}

// The forms below are stored as JSON columns, so they hold only strings and numbers. Times are ISO 8601.

export interface PaymentFee {
  readonly type: FeeType
  readonly stage: FeeStage
  readonly provider?: string
  readonly amount: DecimalString
  readonly currency: string
  readonly amountInUsd?: DecimalString
  /** Canonical address. */
  readonly receiverAddress?: string
  readonly network?: string
}

export interface ExchangeRate {
  readonly from: string
  readonly to: string
  /** Units of `to` for one of `from`. */
  readonly rate: DecimalString
  readonly source: string
  readonly at?: string
}

export interface PaymentGas {
  /** Units of gas, as digits. */
  readonly used?: string
  /** Price of one unit of gas, in human units of `currency`. */
  readonly price?: DecimalString
  readonly amount: DecimalString
  readonly currency: string
  readonly amountInUsd?: DecimalString
}

export interface PaymentRefund {
  /** Of a refund that returned several payments, the part that belongs to this one. */
  readonly amount: DecimalString
  readonly currency: string
  readonly network: string
  readonly txHash: string
  readonly eventIndex?: number
  readonly timestamp?: string
  /** Canonical address of who received it. */
  readonly recipient?: string
  /** Whether it is more than all payments before it brought: it returns nothing of this one. */
  readonly excess?: true
  /** Whether an import brought it: then it stays on this payment. */
  readonly imported?: true
}

export interface StatusChange {
  readonly status: PaymentStatus
  readonly at: string
}

/** The number that a status is stored and sorted by. */
export const rankOfStatus = numberIn(paymentStatuses)

/** The status of a stored rank. */
export const statusOfRank = valueIn(paymentStatuses, 'payment status has')

/** The number that marks are stored as. */
export function bitsOfMarks(marks: readonly PaymentMark[]): number {
  return paymentMarks.reduce((bits, mark, place) => (marks.includes(mark) ? bits | (1 << place) : bits), 0)
}

/** The marks of a stored number. */
export function marksOfBits(bits: number): PaymentMark[] {
  return bits === 0 ? [] : paymentMarks.filter((_, place) => (bits & (1 << place)) !== 0)
}

/** The number that a type is stored by. */
export const codeOfType = numberIn(paymentTypes)

/** The type of a stored number. */
export const typeOfCode = valueIn(paymentTypes, 'payment type has')
