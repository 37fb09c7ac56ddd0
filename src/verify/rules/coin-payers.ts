import {
  type Call,
  type CalledPayment,
  decodeAccountCall,
  decodeBatchCall,
  decodeProxyCall,
} from '../../contracts/decode-calls.ts'
import { type Address, isZeroAddress } from '../../domain/address.ts'
import type { Frame } from '../read/read-frames.ts'
import type { Receipt } from '../read/read-receipts.ts'
import type { KnownContracts } from './known-contracts.ts'
import type { PaymentEvent } from './transaction-events.ts'

/** Who paid coins, where it is certain. */
export interface CoinPayer {
  readonly payer?: Address | undefined
  /** The direct caller of the proxy; absent where that is a contract that pays for others. */
  readonly paidFrom?: Address | undefined
  /** Whether a bridge's executor called the proxy. */
  readonly isCarried: boolean
}

const UNKNOWN: CoinPayer = { isCarried: false }

/** Whether the receipt alone tells who paid: the sender called the proxy, which emitted one event. */
export function isPlainCall(events: readonly PaymentEvent[], { to }: Receipt): boolean {
  return events.length === 1 && events[0]?.emitter === to
}

/** The payer by the sender alone, for {@link isPlainCall}. */
export function payerOfPlainCall({ from }: Receipt, contracts: KnownContracts): CoinPayer {
  return describeCaller(from, undefined, contracts)
}

/**
 * Finds payers by a trace: each event belongs to the call of its proxy with the same terms, in the order in which the calls ended.
 *
 * @param events - all payments in coins of the transaction
 * @returns by the event's index; empty where calls and events do not fit together
 */
export function payersOfFrames(
  events: readonly PaymentEvent[],
  frames: readonly Frame[],
  contracts: KnownContracts,
): Map<number, CoinPayer> {
  const emitters = new Set(events.map(({ emitter }) => emitter))
  const calls = frames.flatMap((frame) => {
    const payment = frame.isCall && emitters.has(frame.to) ? decodeProxyCall(frame.input, frame.value) : undefined
    return payment === undefined ? [] : [{ frame, payment }]
  })
  const isSame =
    calls.length === events.length &&
    events.every((event, place) => {
      const call = calls[place]
      return call !== undefined && call.frame.to === event.emitter && hasTerms(event, call.payment)
    })
  if (!isSame) return new Map()
  const paid = events.map((event, place) => ({ event, frame: calls[place]?.frame as Frame }))
  return new Map(paid.map(({ event, frame }) => [event.eventIndex, callerOf(frame, paid, contracts)]))
}

interface PaidByFrame {
  readonly event: PaymentEvent
  readonly frame: Frame
}

/**
 * The payer is the direct caller. Where that pays for others, it is the account that called it and sent enough coins for all of its payments. If a
 * payee pays on when he receives coins, that is not a payment of the contract that paid him.
 */
function callerOf(frame: Frame, paid: readonly PaidByFrame[], contracts: KnownContracts): CoinPayer {
  const { from } = frame
  if (!contracts.isIntermediary(from)) return describeCaller(from, from, contracts)
  const passing = passingCalls(frame, contracts)
  const isCovered = passing.every((above) => {
    const spent = paid.filter((each) => passingCalls(each.frame, contracts).includes(above))
    return above.value >= spent.reduce((total, { event }) => total + event.amount + event.feeAmount, 0n)
  })
  const outermost = passing.at(-1)
  if (outermost === undefined || contracts.isIntermediary(outermost.from) || !isCovered) return UNKNOWN
  const { payer, isCarried } = describeCaller(outermost.from, undefined, contracts)
  return { payer, isCarried }
}

/** The calls to the intermediaries through which a call was made, the nearest first. */
function passingCalls(frame: Frame, contracts: KnownContracts): Frame[] {
  if (!contracts.isIntermediary(frame.from)) return []
  const above = ancestors(frame).find((each) => each.isCall && each.to === frame.from)
  return above === undefined ? [] : [above, ...passingCalls(above, contracts)]
}

function ancestors({ parent }: Frame): Frame[] {
  return parent === undefined ? [] : [parent, ...ancestors(parent)]
}

function describeCaller(caller: Address, paidFrom: Address | undefined, contracts: KnownContracts): CoinPayer {
  if (contracts.isExecutor(caller)) return { isCarried: true }
  if (contracts.isSwap(caller) || contracts.isIntermediary(caller)) return UNKNOWN
  return { payer: caller, paidFrom: paidFrom ?? caller, isCarried: false }
}

/**
 * Finds payers without a trace, from the input of the transaction, where it calls a listed batch, a Safe, or an account that calls itself. The
 * payments in the input must be the events of the transaction, in the same order.
 *
 * @param events - all payments of the transaction, in coins or not
 */
export function payersOfCall(
  events: readonly PaymentEvent[],
  call: Call,
  contracts: KnownContracts,
): Map<number, CoinPayer> {
  const asBatch = contracts.isIntermediary(call.to)
  const decoded = asBatch
    ? decodeBatchCall(call.input).map((payment) => ({ payment, to: undefined }))
    : accountPayments(call, contracts)
  if (decoded === undefined || decoded.length !== events.length) return new Map()
  const isSame = events.every((event, place) => {
    const each = decoded[place]
    return each !== undefined && (each.to === undefined || each.to === event.emitter) && hasTerms(event, each.payment)
  })
  const sum = events.reduce((total, { amount, feeAmount }) => total + amount + feeAmount, 0n)
  if (!isSame || (asBatch && call.value < sum)) return new Map()
  const caller = asBatch ? call.caller : call.to
  const described = describeCaller(caller, asBatch ? undefined : caller, contracts)
  const { payer, paidFrom, isCarried } = described
  return new Map(
    events.map(({ eventIndex }) => [eventIndex, { payer, paidFrom: asBatch ? undefined : paidFrom, isCarried }]),
  )
}

/** The payments that a Safe or an account that calls itself makes directly. */
function accountPayments(call: Call, contracts: KnownContracts): { payment: CalledPayment; to: Address }[] | undefined {
  const calls = decodeAccountCall(call)
  if (calls === undefined) return undefined
  return calls.flatMap(({ to, input, value }) => {
    const isProxy = contracts.followed.includes(to)
    const payment = isProxy ? decodeProxyCall(input, value) : undefined
    return payment === undefined ? [] : [{ payment, to }]
  })
}

/** Whether an event has the terms of a call. The coins of a conversion are not in the call: the contract computes them. */
function hasTerms(event: PaymentEvent, { to, topic, feeAddress, paid, invoiced }: CalledPayment): boolean {
  if (event.to !== to || event.topic !== topic || event.token !== undefined) return false
  if (event.feeAddress !== feeAddress && !isZeroAddress(event.feeAddress)) return false
  if (paid !== undefined) return paid.amount === event.amount && paid.feeAmount === event.feeAmount
  return invoiced?.amount === event.conversion?.amount && invoiced?.feeAmount === event.conversion?.feeAmount
}
