import type { Address } from '../../domain/address.ts'
import type { DecimalString } from '../../domain/decimal.ts'
import type { Hex } from '../../domain/hex.ts'
import type { ExchangeRate, PaymentFee, PaymentGas, PaymentType } from '../../domain/payment.ts'
import type { UnmatchedReason } from './match-event.ts'

/** Where on a chain something was seen. */
export interface Sighting {
  readonly txHash: Hex
  readonly eventIndex: number
  readonly blockNumber: number
  readonly timestamp: Date
}

/** A payment as the chain tells it. Amounts are in human units. */
export interface DetectedPayment extends Sighting {
  readonly id: string
  readonly requestId: string
  readonly type: PaymentType
  readonly amount: DecimalString
  readonly currency: string
  readonly amountInUsd?: DecimalString
  readonly invoiceAmount: DecimalString
  readonly invoiceCurrency: string
  readonly payer?: Address
  readonly payee: Address
  readonly initiator: Address
  readonly tokenAddress?: Address
  readonly paymentReference: Hex
  readonly reference?: string
  readonly fees: readonly PaymentFee[]
  readonly exchangeRates: readonly ExchangeRate[]
  readonly gas?: PaymentGas
}

/** A refund as the chain tells it. */
export interface DetectedRefund extends Sighting {
  readonly requestId: string
  readonly amount: DecimalString
  readonly currency: string
}

/** An event that changes no balance. */
export interface UnmatchedEvent extends Sighting {
  /** 0: nobody's topic. */
  readonly accountId: number
  readonly reason: UnmatchedReason
  readonly topic: Hex
  /** What it said; amounts as digits in base units. */
  readonly event: Readonly<Record<string, string>>
}

/** A contract that Request's factory made to pay one request: whoever gives it money is the payer. */
export interface CreatedProxy {
  readonly address: Address
  readonly blockNumber: number
}

/** All that some blocks or transactions meant, by account. */
export interface Findings {
  readonly accounts: ReadonlyMap<number, { readonly payments: DetectedPayment[]; readonly refunds: DetectedRefund[] }>
  readonly unmatched: readonly UnmatchedEvent[]
  /** SingleRequestProxies that were made there. */
  readonly proxies: readonly CreatedProxy[]
  /** Which accounts knew each topic when it was looked up. */
  readonly directory: ReadonlyMap<Hex, readonly number[]>
  /** Transactions that were to be read again and are left out, since the node that traces them failed just now. */
  readonly untraced: ReadonlySet<Hex>
}
