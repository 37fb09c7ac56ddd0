import {
  type Call,
  type CalledPayment,
  decodeAccountCall,
  decodeBatchCall,
  decodeFeeProxyCall,
  decodeProxyCall,
} from '../../contracts/decode-calls.ts'
import {
  decodeFeeProxyLog,
  decodeTransferLog,
  type FeeProxyEvent,
  isNativeFeeProxyLog,
  type RpcLog,
} from '../../contracts/decode-events.ts'
import type { Address } from '../../domain/address.ts'
import type { Hex } from '../../domain/hex.ts'
import type { CallFrame, KnownCalls } from '../read/call-frames.ts'
import type { FollowedContracts } from './followed-contracts.ts'

/** A payment in the chain's coin through a followed contract. */
interface NativeEvent extends FeeProxyEvent {
  /** Of its log in the transaction. */
  readonly position: number
  /** In the invoice currency. */
  readonly conversion: { readonly amount: bigint; readonly feeAmount: bigint } | undefined
}

/** Who made a payment in coins. What is not certain is absent. */
interface NativeOrigin {
  /** The direct caller of the proxy. */
  readonly caller?: Address | undefined
  readonly payer?: Address | undefined
  /** Set on the last payment before a batch sent its fee to the payments' fee address, in wei. */
  readonly batchFee?: bigint
}

/** By the position of the event. */
export type NativeOrigins = ReadonlyMap<number, NativeOrigin>

/** A transaction with payments in coins. */
interface NativeTransaction {
  readonly from: Address
  readonly to?: Address | undefined
  readonly logs: readonly RpcLog[]
}

/** Whether a receipt leaves open who made any of the wanted payments in coins. */
export function needsCalls(
  transaction: NativeTransaction,
  { contracts }: FollowedContracts,
  isWanted: (event: FeeProxyEvent) => boolean,
): boolean {
  const ownProxy = ownProxyOf(transaction)
  return transaction.logs.some((log) => {
    const event = isNativeFeeProxyLog(log) ? decodeFeeProxyLog(log) : undefined
    return event !== undefined && event.emitter !== ownProxy && contracts.has(event.emitter) && isWanted(event)
  })
}

/** Addresses that may have passed money on in transactions: those that were called, and those that sent tokens. */
export function addressesIn(
  transactions: readonly (NativeTransaction & { readonly txHash: Hex })[],
  calls: ReadonlyMap<Hex, KnownCalls>,
): Address[] {
  const found = new Set<Address>()
  for (const { txHash, to, logs } of transactions) {
    if (to !== undefined) found.add(to)
    for (const log of logs) {
      const transfer = decodeTransferLog(log)
      if (transfer !== undefined) found.add(transfer.from)
    }
    const known = calls.get(txHash)
    if (known?.kind === 'TRACE') addCalled(known.root, found)
  }
  return [...found]
}

function addCalled({ to, calls }: CallFrame, found: Set<Address>): void {
  if (to !== '') found.add(to)
  for (const call of calls) addCalled(call, found)
}

/**
 * The proxy that the sender called directly, where the receipt alone proves it: the transaction is to the proxy, and the proxy emitted one payment.
 * If it emitted two, a contract that was paid made the other.
 */
function ownProxyOf({ to, logs }: NativeTransaction): Address | undefined {
  const emitted = logs.filter((log) => isNativeFeeProxyLog(log) && log.address.toLowerCase() === to)
  return emitted.length === 1 ? to : undefined
}

/** Finds who made each of a transaction's payments in coins. */
export function findNativeOrigins(
  transaction: NativeTransaction,
  events: readonly NativeEvent[],
  calls: KnownCalls | undefined,
  followed: FollowedContracts,
): NativeOrigins {
  const origins = new Map(calls === undefined ? [] : fromCalls(transaction, events, calls, followed))
  const ownProxy = ownProxyOf(transaction)
  for (const event of events) {
    if (event.emitter !== ownProxy) continue
    origins.set(event.position, { caller: transaction.from, payer: transaction.from })
  }
  return origins
}

function fromCalls(
  transaction: NativeTransaction,
  events: readonly NativeEvent[],
  calls: KnownCalls,
  followed: FollowedContracts,
): NativeOrigins {
  if (calls.kind === 'OWN_CALL') return fromOwnCall(transaction, events, calls, followed)
  const { root } = calls
  const isTraceOfIt = root.from === transaction.from && (transaction.to === undefined || root.to === transaction.to)
  return isTraceOfIt ? fromTrace(root, events, followed) : new Map()
}

/** A running contract or account: who called it, with how much, and what it paid. */
interface Context {
  readonly address: Address
  readonly caller: Address
  readonly value: bigint
  readonly parent: Context | undefined
  /** The payments that it made through proxies and the coins that it sent by itself, in order. */
  readonly steps: (CalledPayment | Sent)[]
}

/** Coins sent without data. */
interface Sent {
  readonly sentTo: Address
  readonly value: bigint
}

/** A call of a proxy for coins that was not reverted, and the running proxy. */
interface TracedPayment {
  readonly payment: CalledPayment
  readonly proxy: Context
}

/**
 * Pairs a proxy's events with its calls. It emits at the end of a call, so both are in the order in which the calls ended. Where they do not agree,
 * nothing is known about that proxy's payments.
 */
function fromTrace(root: CallFrame, events: readonly NativeEvent[], followed: FollowedContracts): NativeOrigins {
  const traced = Map.groupBy(findTracedPayments(root, undefined, followed), ({ proxy }) => proxy.address)
  const origins = new Map<number, NativeOrigin>()
  const batched: { readonly batch: Context; readonly event: NativeEvent; readonly payment: CalledPayment }[] = []
  for (const [emitter, own] of Map.groupBy(events, (event) => event.emitter)) {
    const payments = traced.get(emitter) ?? []
    if (payments.length !== own.length || !own.every((event, i) => isSame(event, payments[i]?.payment))) continue
    for (const [index, event] of own.entries()) {
      const { payment, proxy } = payments[index] as TracedPayment
      const { caller, parent } = proxy
      const isBatch = parent !== undefined && followed.intermediaries.has(caller)
      if (isBatch) batched.push({ batch: parent, event, payment })
      else origins.set(event.position, followed.executors.has(caller) ? { caller } : { caller, payer: caller })
    }
  }
  for (const [batch, payments] of Map.groupBy(batched, (each) => each.batch)) {
    const own = payments.map(({ event }) => event)
    const payer = payerOfBatch(batch, own, followed)
    for (const { event, payment } of payments) {
      const batchFee = batchFeeAfter(payment, batch)
      origins.set(event.position, { caller: batch.address, payer, ...(batchFee > 0n ? { batchFee } : {}) })
    }
  }
  return origins
}

/** The fee that a batch sent after a payment and before the next. Where the fee address is its caller, what they get is their own change. */
function batchFeeAfter(payment: CalledPayment, { steps, caller }: Context): bigint {
  if (payment.feeAddress === caller) return 0n
  for (const step of steps.slice(steps.indexOf(payment) + 1)) {
    if (!('sentTo' in step)) return 0n
    if (step.sentTo === payment.feeAddress && step.value > 0n) return step.value
  }
  return 0n
}

/** A batch contract can hold coins of others, so its caller is the payer only if that call brought enough for all of its payments. */
function payerOfBatch(
  { caller, value }: Context,
  events: readonly NativeEvent[],
  { intermediaries, executors }: FollowedContracts,
): Address | undefined {
  const isKnown = value >= sumOf(events) && !intermediaries.has(caller) && !executors.has(caller)
  return isKnown ? caller : undefined
}

function sumOf(events: readonly FeeProxyEvent[]): bigint {
  return events.reduce((sum, { amount, feeAmount }) => sum + amount + feeAmount, 0n)
}

/** Yields the payments in the order in which their calls ended. */
function* findTracedPayments(
  frame: CallFrame,
  parent: Context | undefined,
  followed: FollowedContracts,
): Generator<TracedPayment> {
  if (frame.isReverted || frame.kind === 'STATIC') return
  const context = contextOf(frame, parent)
  if (context === undefined) return
  for (const call of frame.calls) yield* findTracedPayments(call, context, followed)
  if (frame.kind === 'CALL' && frame.input === '0x') parent?.steps.push({ sentTo: frame.to, value: frame.value })
  if (!followed.contracts.has(context.address)) return
  const payment = decodeFeeProxyCall(frame.input, context.value)
  if (payment === undefined) return
  context.parent?.steps.push(payment)
  yield { payment, proxy: context }
}

/** A delegatecall runs in the context of its caller. */
function contextOf(frame: CallFrame, parent: Context | undefined): Context | undefined {
  if (frame.kind === 'DELEGATE') return parent
  return { address: frame.to, caller: frame.from, value: frame.value, parent, steps: [] }
}

/** A call that makes payments: of a proxy one, of a batch several. */
interface PaidCall {
  readonly payer: Address
  /** Absent for a batch and a SingleRequestProxy, which call the proxy themselves. */
  readonly caller?: Address
  readonly value: bigint
  /** Undefined for a payment whose terms are not in the call. */
  readonly payments: readonly (CalledPayment | undefined)[]
}

/**
 * Finds the payers without a trace. The decoded calls must match all payments in coins of the transaction one by one and in order, whoever
 * emitted these: with one event more, another address paid in the same transaction, and it is unknown which payment is whose.
 */
function fromOwnCall(
  transaction: NativeTransaction,
  events: readonly NativeEvent[],
  { value, input }: Extract<KnownCalls, { kind: 'OWN_CALL' }>,
  followed: FollowedContracts,
): NativeOrigins {
  const { from, to, logs } = transaction
  if (to === undefined) return new Map()
  const call: Call = { caller: from, to, value, input }
  const accountCalls = decodeAccountCall(call)
  const isAccount = accountCalls !== undefined && !followed.intermediaries.has(to) && !followed.contracts.has(to)
  const paidCalls = (isAccount ? accountCalls : [call]).flatMap((each) => toPaidCall(each, followed))
  const expected = paidCalls.flatMap((paid) => paid.payments.map((payment) => ({ payment, paid })))
  const isComplete =
    expected.length === events.length &&
    events.length === logs.filter(isNativeFeeProxyLog).length &&
    events.every((event, i) => isSame(event, expected[i]?.payment))
  if (!isComplete || (isAccount && hasUnrelatedLog(transaction, to, events, followed))) return new Map()
  const eventsOf = (paid: PaidCall) => events.filter((_, i) => expected[i]?.paid === paid)
  if (paidCalls.some((paid) => paid.value < sumOf(eventsOf(paid)))) return new Map()
  return new Map(
    events.flatMap((event, i): [number, NativeOrigin][] => {
      const paid = expected[i]?.paid
      if (paid === undefined) return []
      return [[event.position, { payer: paid.payer, caller: paid.caller }]]
    }),
  )
}

function toPaidCall({ caller, to, value, input }: Call, { contracts, intermediaries }: FollowedContracts): PaidCall[] {
  if (contracts.has(to)) {
    const payment = decodeProxyCall(input, value)
    return payment === undefined ? [] : [{ payer: caller, caller, value, payments: [payment] }]
  }
  if (!intermediaries.has(to)) return []
  // A SingleRequestProxy makes one payment with the coins that are sent to it.
  const payments = input === '0x' && value > 0n ? [undefined] : decodeBatchCall(input)
  return [{ payer: caller, value, payments }]
}

/**
 * Whether a contract that has no part in the payments logged something. Calldata can be made to look like an account's own payments while another
 * account pays; the wallet contract of that account mostly logs that it did.
 */
function hasUnrelatedLog(
  { logs }: NativeTransaction,
  account: Address,
  events: readonly NativeEvent[],
  { contracts, intermediaries, tokens }: FollowedContracts,
): boolean {
  const parties = new Set([account, ...events.flatMap(({ to, feeAddress }) => [to, feeAddress])])
  return logs.some((log) => {
    const address = log.address.toLowerCase() as Address
    return !parties.has(address) && !contracts.has(address) && !intermediaries.has(address) && !tokens.has(address)
  })
}

function isSame(event: NativeEvent, payment: CalledPayment | undefined): boolean {
  if (payment === undefined) return true
  const { to, topic, feeAddress, paid, invoiced } = payment
  if (event.to !== to || event.topic !== topic || event.feeAddress !== feeAddress) return false
  if (paid !== undefined && (event.amount !== paid.amount || event.feeAmount !== paid.feeAmount)) return false
  const { conversion } = event
  if (invoiced === undefined) return true
  return conversion?.amount === invoiced.amount && conversion.feeAmount === invoiced.feeAmount
}
