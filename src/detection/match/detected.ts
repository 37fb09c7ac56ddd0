import type { Address } from '../../domain/address.ts'
import type { DecimalString } from '../../domain/decimal.ts'
import type { Hex } from '../../domain/hex.ts'
import type { Payment } from '../../domain/payment.ts'
import type { UnmatchedReason } from './match-event.ts'

/** Identifies a payment event on one chain. */
export interface EventPlace {
  readonly txHash: Hex
  /** 0-based among all payment events of the transaction. */
  readonly eventIndex: number
}

/** An event of one chain as the key of a map. */
export function eventKeyOf({ txHash, eventIndex }: EventPlace): string {
  return `${txHash} ${eventIndex}`
}

/** An event and its block. */
export interface Sighting extends EventPlace {
  readonly blockNumber: number
  readonly timestamp: Date
}

/** An event that counts, and its place in the order of the chain. */
export interface PlacedSighting extends Sighting {
  /** Counted from 0 in the block. */
  readonly logIndex: number
}

/** What a payment that was found on chain has, and an imported one may lack. */
type FoundField =
  | 'requestId'
  | 'type'
  | 'invoiceAmount'
  | 'invoiceCurrency'
  | 'payee'
  | 'initiator'
  | 'paymentReference'

/** The fields of a payment that detection knows by the chain that it reads, or that are decided when the payment is written. */
type OtherField =
  | 'status'
  | 'statusHistory'
  | 'confirmations'
  | 'superseded'
  | 'updatedAt'
  | 'changedAt'
  | 'refunds'
  | 'refundedAmount'
  | 'network'
  | 'chainId'
  | 'sourceNetwork'
  | 'sourceTxHash'
  | 'metadata'

/** A payment as it was read from the chain. Its payer is absent where it is not certain, its token for the chain's coin. */
export type DetectedPayment = PlacedSighting &
  Omit<Payment, keyof PlacedSighting | FoundField | OtherField> & {
    readonly [F in FoundField]: NonNullable<Payment[F]>
  }

/** A refund as it was read from the chain. */
export interface DetectedRefund extends PlacedSighting {
  readonly requestId: string
  /** In human units of `currency`. */
  readonly amount: DecimalString
  readonly currency: string
  readonly recipient: Address
}

/** An event that is neither a payment nor a refund, with the reason. It changes no balance. */
export interface UnmatchedEvent extends Sighting {
  /** 0: no account knows the topic. */
  readonly accountId: number
  readonly reason: UnmatchedReason
  readonly topic: Hex
  /** The fields of the event; amounts as digits in base units. */
  readonly event: Readonly<Record<string, string>>
}

/** A contract that Request's factory created to pay one request. It is an intermediary: whoever gives it the money is the payer. */
export interface CreatedProxy {
  readonly address: Address
  /** Of all payments that it makes. */
  readonly topic: Hex
  readonly blockNumber: number
}

/**
 * A figure of a transaction that could not be read, and may be readable later. It delays no payment.
 *
 * - `PRICE`: what token or gas was worth in US dollars
 * - `GAS`: the price of its gas
 * - `L1_FEE`: what a rollup charged for its parent chain, without which the cost of the gas is unknown
 * - `TRACE`: its calls, which may tell who paid
 * - `SCREENING`: whether the chain's oracle listed who paid
 */
export type Lack = 'PRICE' | 'GAS' | 'L1_FEE' | 'TRACE' | 'SCREENING'

/** What is not known yet of an account's events in a transaction. */
export interface LackingTransaction {
  readonly accountId: number
  readonly txHash: Hex
  readonly blockNumber: number
  /** At least one. */
  readonly lacks: ReadonlySet<Lack>
}

/** What was found in some blocks or transactions. */
export interface Findings {
  /** By account id. */
  readonly accounts: ReadonlyMap<number, { readonly payments: DetectedPayment[]; readonly refunds: DetectedRefund[] }>
  readonly unmatched: readonly UnmatchedEvent[]
  /** SingleRequestProxies that were created there. */
  readonly proxies: readonly CreatedProxy[]
  /** Which accounts knew each topic when the events were matched. */
  readonly directory: ReadonlyMap<Hex, readonly number[]>
  /** Transactions that were to be read again and were left out, because the node that traces them failed. */
  readonly untraced: ReadonlySet<Hex>
  /** Events in coins whose payer no trace could tell, by {@link eventKeyOf}. What is stored of them may rest on one. */
  readonly withoutTrace: ReadonlySet<string>
  /** When the oracle's list changed last there, in seconds. */
  readonly listChangedAtSec?: number | undefined
  /** What is to be looked up again. */
  readonly lacking: readonly LackingTransaction[]
}
