import {
  decodeConversionLog,
  decodeCreatedProxyLog,
  decodeFeeProxyLog,
  decodeTransferLog,
  type FeeProxyEvent,
  isFeeProxyLog,
  type TransferEvent,
} from '../../contracts/decode-events.ts'
import { type Address, isZeroAddress } from '../../domain/address.ts'
import type { Receipt } from '../read/read-receipts.ts'
import type { KnownContracts } from './known-contracts.ts'

/** A followed payment event, and the money that moved with it by the receipt. Amounts in base units. */
export interface PaymentEvent extends FeeProxyEvent {
  /** 0-based among the `TransferWithReferenceAndFee` logs of the transaction, whoever emitted them. */
  readonly eventIndex: number
  /** Of the log in its block. */
  readonly logIndex: number
  /** The same payment in the invoice currency. */
  readonly conversion?: { readonly amount: bigint; readonly currency: Address; readonly feeAmount: bigint } | undefined
  /** What the payee received. */
  readonly received: bigint
  /** What the fee's address received. */
  readonly feeReceived: bigint
  /** The Transfer that the event claims for the payee: where it stands among the logs, and from whom. Tokens only. */
  readonly claimed?: { readonly logPlace: number; readonly from: Address; readonly value: bigint } | undefined
}

/** What the logs of one transaction hold. */
export interface ReadLogs {
  readonly events: readonly PaymentEvent[]
  readonly transfers: readonly PlacedTransfer[]
  /** Those that no event claims: fees of batches and swaps are among them. */
  readonly unclaimed: readonly PlacedTransfer[]
  readonly createdProxies: readonly Address[]
}

/** A Transfer and the place of its log in the transaction. */
export interface PlacedTransfer extends TransferEvent {
  readonly logPlace: number
}

/** Reads the payment events of a transaction, and finds the Transfers that belong to each. */
export function readLogs(receipt: Receipt, blockNumber: number, contracts: KnownContracts): ReadLogs {
  const { logs } = receipt
  const transfers = logs.flatMap((log, logPlace) => {
    const transfer = decodeTransferLog(log)
    return transfer === undefined ? [] : [{ ...transfer, logPlace }]
  })
  const claimed = new Set<PlacedTransfer>()
  let eventIndex = -1
  const events: PaymentEvent[] = []
  for (const [logPlace, log] of logs.entries()) {
    if (!isFeeProxyLog(log)) continue
    eventIndex++
    const event = decodeFeeProxyLog(log)
    if (event === undefined || !contracts.isFollowed(event.emitter, blockNumber)) continue
    const conversion = conversionOf(receipt, logPlace, event)
    const money = claimMoney(
      event,
      transfers.filter((transfer) => transfer.logPlace < logPlace),
      claimed,
    )
    events.push({ ...event, eventIndex, logIndex: Number(log.logIndex), conversion, ...money })
  }
  const createdProxies = logs.flatMap((log) => {
    const factory = log.address.toLowerCase() as Address
    const isCreated = contracts.isFactory(factory) && contracts.isFollowed(factory, blockNumber)
    const proxy = isCreated ? decodeCreatedProxyLog(log) : undefined
    return proxy === undefined ? [] : [proxy.address]
  })
  const unclaimed = transfers.filter((transfer) => !claimed.has(transfer))
  return { events, transfers, unclaimed, createdProxies }
}

/** The conversion log between the event's log and the next payment log of the same emitter and topic. */
function conversionOf(
  { logs }: Receipt,
  logPlace: number,
  { emitter, topic }: FeeProxyEvent,
): PaymentEvent['conversion'] {
  for (const log of logs.slice(logPlace + 1)) {
    if (log.address.toLowerCase() !== emitter || log.topics[1] !== topic) continue
    if (isFeeProxyLog(log)) return undefined
    const conversion = decodeConversionLog(log)
    if (conversion !== undefined) {
      return { amount: conversion.amount, currency: conversion.currency, feeAmount: conversion.feeAmount }
    }
  }
  return undefined
}

type Money = Pick<PaymentEvent, 'received' | 'feeReceived' | 'claimed'>

/** What arrived: of coins what the event says, of tokens what the claimed Transfers moved. */
function claimMoney(event: FeeProxyEvent, earlier: readonly PlacedTransfer[], claimed: Set<PlacedTransfer>): Money {
  const { token, to, amount, feeAmount, feeAddress } = event
  if (token === undefined) return { received: amount, feeReceived: feeAmount }
  const free = earlier.filter((transfer) => transfer.token === token && !claimed.has(transfer))
  const hasFee = feeAmount > 0n && !isZeroAddress(feeAddress)
  const fee = hasFee
    ? atMost(
        free.findLast((transfer) => transfer.to === feeAddress),
        feeAmount,
      )
    : undefined
  if (fee !== undefined) claimed.add(fee)
  const nearest = free.findLast(
    (transfer) =>
      transfer !== fee &&
      transfer.to === to &&
      (fee === undefined || (transfer.logPlace < fee.logPlace && transfer.from === fee.from)),
  )
  const paid = atMost(nearest, amount)
  if (paid !== undefined) claimed.add(paid)
  return {
    received: paid?.value ?? 0n,
    feeReceived: fee?.value ?? 0n,
    claimed: paid && { logPlace: paid.logPlace, from: paid.from, value: paid.value },
  }
}

/** The Transfer, unless it moved more than the event says: then it was made for something else. */
function atMost(transfer: PlacedTransfer | undefined, value: bigint): PlacedTransfer | undefined {
  return transfer !== undefined && transfer.value <= value ? transfer : undefined
}
