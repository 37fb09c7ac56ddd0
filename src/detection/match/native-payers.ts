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
import type { CallFrame } from '../read/call-frames.ts'
import type { FollowedContracts } from '../read/followed-contracts.ts'

/** What is known of a transaction's calls beside its receipt: all of them, or the sender's own. `value` in wei. */
export type KnownCalls =
  | { readonly kind: 'TRACE'; readonly root: CallFrame }
  | { readonly kind: 'OWN_CALL'; readonly value: bigint; readonly input: Hex }

/** A payment in coins by a followed contract. */
export interface NativeEvent extends FeeProxyEvent {
  /** Among the logs of the transaction. */
  readonly position: number
  /** In the invoice currency. */
  readonly conversion: { readonly amount: bigint; readonly feeAmount: bigint } | undefined
}

/** Who is behind a payment in coins. What is not certain is absent. */
export interface NativeOrigin {
  /** The direct caller of the proxy. */
  readonly caller?: Address
  readonly payer?: Address
  /** Wei that a batch sent to the event's fee address after its last payment, which this is. */
  readonly batchFee?: bigint
}

/** By position of the event. */
export type NativeOrigins = ReadonlyMap<number, NativeOrigin>

/** A transaction with payments in coins. */
export interface NativeTransaction {
  readonly from: Address
  readonly to?: Address
  readonly logs: readonly RpcLog[]
}

/** Whether a receipt leaves open who paid a payment in coins that is wanted. */
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

/** All that may have passed money on in transactions: whom they called, and who sent tokens. */
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
 * The proxy that the sender called himself, where the receipt alone tells so: the transaction is to it, and it emitted one payment. With
 * two, the other is of somebody whom the payment called.
 */
function ownProxyOf({ to, logs }: NativeTransaction): Address | undefined {
  const emitted = logs.filter((log) => isNativeFeeProxyLog(log) && log.address.toLowerCase() === to)
  return emitted.length === 1 ? to : undefined
}

/** Finds who paid each of a transaction's payments in coins. */
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
  const isOfIt = root.from === transaction.from && (transaction.to === undefined || root.to === transaction.to)
  return isOfIt ? fromTrace(root, events, followed) : new Map()
}

/** A contract, or a wallet, that runs: who called it, with how much, and what it sent out without a call of a function. */
interface Context {
  readonly address: Address
  readonly caller: Address
  readonly value: bigint
  readonly parent: Context | undefined
  readonly sent: { readonly to: Address; readonly value: bigint }[]
}

/** A call of a proxy for coins that was not undone, and the proxy that ran. */
interface TracedPayment {
  readonly payment: CalledPayment
  readonly proxy: Context
}

/**
 * The payments of a proxy are its calls, in the order in which they ended, since it emits at the end. Where the two do not agree, nothing is
 * known of that proxy's payments.
 */
function fromTrace(root: CallFrame, events: readonly NativeEvent[], followed: FollowedContracts): NativeOrigins {
  const traced = Map.groupBy(findPayments(root, undefined, followed), ({ proxy }) => proxy.address)
  const origins = new Map<number, NativeOrigin>()
  const batched: { readonly batch: Context; readonly event: NativeEvent }[] = []
  for (const [emitter, own] of Map.groupBy(events, (event) => event.emitter)) {
    const payments = traced.get(emitter) ?? []
    if (payments.length !== own.length || !own.every((event, i) => isSame(event, payments[i]?.payment))) continue
    for (const [index, event] of own.entries()) {
      const { caller, parent } = (payments[index] as TracedPayment).proxy
      const isBatch = parent !== undefined && followed.intermediaries.has(caller)
      if (isBatch) batched.push({ batch: parent, event })
      else origins.set(event.position, followed.executors.has(caller) ? { caller } : { caller, payer: caller })
    }
  }
  for (const [batch, payments] of Map.groupBy(batched, (each) => each.batch)) {
    const own = payments.map(({ event }) => event)
    const payer = payerOfBatch(batch, own, followed)
    for (const event of own) origins.set(event.position, { caller: batch.address, ...payer })
    const last = own.reduce((a, b) => (a.position > b.position ? a : b))
    const fee = batch.sent.find(({ to, value }) => to === last.feeAddress && value > 0n)
    if (fee !== undefined) origins.set(last.position, { caller: batch.address, ...payer, batchFee: fee.value })
  }
  return origins
}

/** A batch may hold coins of others, so its caller is the payer only if that call brought enough for all of its payments. */
function payerOfBatch(
  { caller, value }: Context,
  events: readonly NativeEvent[],
  { intermediaries, executors }: FollowedContracts,
): { payer?: Address } {
  const isKnown = value >= sumOf(events) && !intermediaries.has(caller) && !executors.has(caller)
  return isKnown ? { payer: caller } : {}
}

function sumOf(events: readonly FeeProxyEvent[]): bigint {
  return events.reduce((sum, { amount, feeAmount }) => sum + amount + feeAmount, 0n)
}

/** In the order in which the calls ended. */
function* findPayments(
  frame: CallFrame,
  parent: Context | undefined,
  followed: FollowedContracts,
): Generator<TracedPayment> {
  if (frame.isReverted || frame.kind === 'STATIC') return
  const context = contextOf(frame, parent)
  if (context === undefined) return
  for (const call of frame.calls) yield* findPayments(call, context, followed)
  if (frame.kind === 'CALL' && frame.input === '0x') parent?.sent.push({ to: frame.to, value: frame.value })
  if (!followed.contracts.has(context.address)) return
  const payment = decodeFeeProxyCall(frame.input, context.value)
  if (payment !== undefined) yield { payment, proxy: context }
}

/** Code that is run by delegation runs as the one that delegates. */
function contextOf(frame: CallFrame, parent: Context | undefined): Context | undefined {
  if (frame.kind === 'DELEGATE') return parent
  return { address: frame.to, caller: frame.from, value: frame.value, parent, sent: [] }
}

/** What a call gives to payments: of a proxy to one, of a batch to several. */
interface PaidCall {
  readonly payer: Address
  /** Absent for a batch and a SingleRequestProxy, which are callers themselves. */
  readonly caller?: Address
  readonly value: bigint
  /** Undefined for a payment of which the call tells nothing but that it is made. */
  readonly payments: readonly (CalledPayment | undefined)[]
}

/**
 * Without a trace, the decoded calls must be the transaction's payments in coins one by one and in order, whoever emitted these. With one
 * event more, somebody else paid in the same transaction, and nobody can tell which is whose.
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
  if (!isComplete || (isAccount && hasStranger(transaction, to, events, followed))) return new Map()
  const eventsOf = (paid: PaidCall) => events.filter((_, i) => expected[i]?.paid === paid)
  if (paidCalls.some((paid) => paid.value < sumOf(eventsOf(paid)))) return new Map()
  return new Map(
    events.flatMap((event, i): [number, NativeOrigin][] => {
      const paid = expected[i]?.paid
      if (paid === undefined) return []
      const caller = paid.caller === undefined ? {} : { caller: paid.caller }
      return [[event.position, { payer: paid.payer, ...caller }]]
    }),
  )
}

function toPaidCall({ caller, to, value, input }: Call, { contracts, intermediaries }: FollowedContracts): PaidCall[] {
  if (contracts.has(to)) {
    const payment = decodeProxyCall(input, value)
    return payment === undefined ? [] : [{ payer: caller, caller, value, payments: [payment] }]
  }
  if (!intermediaries.has(to)) return []
  // A SingleRequestProxy pays once with the coins that it is sent.
  const payments = input === '0x' && value > 0n ? [undefined] : decodeBatchCall(input)
  return [{ payer: caller, value, payments }]
}

/**
 * Whether a contract that has no part in the payments logged something. A transaction that only looks like an account's own can have another
 * account pay instead, whose wallet mostly logs that it did.
 */
function hasStranger(
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
