import {
  decodeConversionLog,
  decodeFeeProxyLog,
  decodeTransferLog,
  type FeeProxyEvent,
  isFeeProxyLog,
  type RpcLog,
} from '../../contracts/decode-events.ts'
import { type Address, ZERO_ADDRESS } from '../../domain/address.ts'
import type { KnownCalls } from '../read/call-frames.ts'
import type { TransactionReceipt } from '../read/chain-reader.ts'
import {
  type Claim,
  createTransferClaims,
  followMoney,
  type MoneySources,
  type PlacedTransfer,
} from './follow-money.ts'
import type { FollowedContracts } from './followed-contracts.ts'
import { findNativeOrigins, type NativeOrigins } from './native-payers.ts'

/** A payment event and the receipt of its transaction. */
export interface ReadEvent {
  readonly event: SeenEvent
  readonly receipt: TransactionReceipt
  /** Whether its payer is unknown because the trace of its transaction was not read. */
  readonly lacksTrace: boolean
}

/** A payment event of a followed contract, with what its transaction shows about it. */
export interface SeenEvent extends FeeProxyEvent {
  /** 0-based among all payment events of the transaction, whoever emitted them. */
  readonly eventIndex: number
  /** Counted from 0 in the block. */
  readonly logIndex: number
  /** What `to` received, in base units of token or coin. */
  readonly received: bigint
  /** What `feeAddress` received, likewise. 0 where no fee was charged. A fee in coins is charged also for address 0, which burns it. */
  readonly feeReceived: bigint
  /** What `feeAddress` received beside it from the contract that swapped or batched, or its caller; no event contains it. */
  readonly swapFeeReceived: bigint
  /** Absent where it is not certain. */
  readonly payer?: Address | undefined
  /**
   * Whose balance the proxy took the money from: `from` of the claimed Transfer; of coins, the direct caller of the proxy. Absent where that is
   * not certain, and for coins where the caller is a batch or a SingleRequestProxy.
   */
  readonly paidFrom?: Address | undefined
  /** Whether a bridge's executor called the proxy: then the payer is on another chain. */
  readonly isCarried: boolean
  /** Of a conversion, in the invoice's currency. */
  readonly conversion?: { readonly amount: bigint; readonly currency: Address; readonly feeAmount: bigint } | undefined
}

interface Draft {
  readonly event: FeeProxyEvent
  readonly eventIndex: number
  readonly logIndex: number
  readonly position: number
  readonly claim: Claim
  conversion: SeenEvent['conversion']
}

/**
 * Reads the payment events of a transaction. The event of a token can say more than the payee got (tokens that keep a part of each transfer), so
 * the Transfer that the event claims is what counts.
 *
 * @param calls - what was read of the transaction's calls; needed only to tell who paid in coins
 * @see CHAIN, "Who paid"
 */
export function readTransaction(
  receipt: TransactionReceipt,
  followed: FollowedContracts,
  calls?: KnownCalls,
): SeenEvent[] {
  const transfers: PlacedTransfer[] = []
  const claims = createTransferClaims()
  const drafts: Draft[] = []
  let eventIndex = 0
  for (const [position, log] of receipt.logs.entries()) {
    const transfer = decodeTransferLog(log)
    if (transfer !== undefined) {
      transfers.push({ ...transfer, position })
      claims.add({ ...transfer, position })
    }
    const index = isFeeProxyLog(log) ? eventIndex++ : eventIndex
    if (!followed.contracts.has(log.address.toLowerCase() as Address)) continue
    const event = decodeFeeProxyLog(log)
    if (event !== undefined) {
      const place = { eventIndex: index, logIndex: Number(log.logIndex), position }
      drafts.push({ event, ...place, claim: claims.claim(event), conversion: undefined })
    }
    addConversion(log, drafts)
  }
  const payments = new Set(drafts.flatMap(({ claim }) => claim.paidBy?.position ?? []))
  const context: TransactionContext = {
    followed,
    drafts,
    unclaimed: transfers.filter((transfer) => !claims.isClaimed(transfer)),
    runs: findBatchRuns(transfers, drafts.flatMap(paidByIntermediary(followed))),
    sources: followMoney(transfers, ({ position }) => payments.has(position), followed),
    origins: readOrigins(receipt, drafts, calls, followed),
  }
  return drafts.map((draft) => finishEvent(draft, context))
}

/** A conversion proxy runs the fee proxy's code by delegatecall and logs its own event right after that one. */
function addConversion(log: RpcLog, drafts: readonly Draft[]): void {
  const conversion = decodeConversionLog(log)
  if (conversion === undefined) return
  const { emitter, topic, amount, currency, feeAmount } = conversion
  const owner = drafts.findLast(({ event }) => event.emitter === emitter && event.topic === topic)
  if (owner !== undefined && owner.conversion === undefined) owner.conversion = { amount, currency, feeAmount }
}

function readOrigins(
  receipt: TransactionReceipt,
  drafts: readonly Draft[],
  calls: KnownCalls | undefined,
  followed: FollowedContracts,
): NativeOrigins {
  const natives = drafts.filter(({ event }) => event.token === undefined)
  const events = natives.map(({ event, position, conversion }) => ({ ...event, position, conversion }))
  return natives.length === 0 ? new Map() : findNativeOrigins(receipt, events, calls, followed)
}

interface TransactionContext {
  readonly followed: FollowedContracts
  /** All events of followed contracts, in log order. */
  readonly drafts: readonly Draft[]
  /** Transfers that no event has claimed, in log order. */
  readonly unclaimed: readonly PlacedTransfer[]
  readonly runs: ReturnType<typeof findBatchRuns>
  readonly sources: MoneySources
  readonly origins: NativeOrigins
}

type Finished = Pick<SeenEvent, 'received' | 'feeReceived' | 'swapFeeReceived' | 'payer' | 'paidFrom' | 'isCarried'>

function finishEvent(draft: Draft, context: TransactionContext): SeenEvent {
  const { event, eventIndex, logIndex, conversion } = draft
  const finished = event.token === undefined ? finishNative(draft, context) : finishToken(draft, context)
  return { ...event, eventIndex, logIndex, ...finished, conversion }
}

function finishNative({ event, position }: Draft, { origins, followed }: TransactionContext): Finished {
  const { caller, payer, batchFee = 0n } = origins.get(position) ?? {}
  const isDirect = caller !== undefined && !followed.intermediaries.has(caller)
  return {
    received: event.amount,
    // To address 0 the fee is burned, which costs the payer as much.
    feeReceived: event.feeAmount,
    swapFeeReceived: batchFee,
    payer,
    paidFrom: isDirect ? caller : undefined,
    isCarried: caller !== undefined && followed.executors.has(caller),
  }
}

function finishToken(draft: Draft, context: TransactionContext): Finished {
  const { paidBy, feePaidBy } = draft.claim
  const payer = tokenPayerOf(paidBy, context)
  return {
    received: paidBy?.value ?? 0n,
    feeReceived: feePaidBy?.value ?? 0n,
    swapFeeReceived: addedFeeOf(draft, payer, context),
    payer,
    paidFrom: paidBy?.from,
    // The proxy pulls tokens from its caller.
    isCarried: paidBy !== undefined && context.followed.executors.has(paidBy.from),
  }
}

/** A Transfer of 0, and any Transfer of a token that is not listed, can name anybody as its sender, so it proves no payer. */
function tokenPayerOf(paidBy: PlacedTransfer | undefined, { followed, sources }: TransactionContext) {
  if (paidBy === undefined || paidBy.value === 0n || !followed.tokens.has(paidBy.token)) return undefined
  if (followed.executors.has(paidBy.from)) return undefined
  return followed.intermediaries.has(paidBy.from) ? sources.get(paidBy.position) : paidBy.from
}

function paidByIntermediary({ intermediaries }: FollowedContracts) {
  return ({ event: { token }, position, claim: { paidBy } }: Draft) =>
    paidBy === undefined || token === undefined || !intermediaries.has(paidBy.from)
      ? []
      : [{ position, intermediary: paidBy.from, token }]
}

/**
 * Finds the fee of a swap or a batch. A swap sends its fee right after it paid. A batch sends its own once for all payments of a token, before or
 * after them, or has its caller send it: it belongs to the last of these payments. Both go to the fee address of the payments. Where that is the
 * payer, what they get is their own change.
 */
function addedFeeOf(
  { event: { token, feeAddress }, position, claim: { paidBy } }: Draft,
  payer: Address | undefined,
  { followed, drafts, unclaimed, runs }: TransactionContext,
): bigint {
  if (paidBy === undefined || !followed.intermediaries.has(paidBy.from)) return 0n
  if (feeAddress === ZERO_ADDRESS || feeAddress === payer) return 0n
  const isSwap = followed.swaps.has(paidBy.from)
  const next = isSwap ? drafts.find((each) => each.position > position) : undefined
  const range = isSwap ? { after: position, before: next?.position ?? Number.POSITIVE_INFINITY } : runs.get(position)
  if (range === undefined) return 0n
  const senders = isSwap ? [paidBy.from] : [paidBy.from, payer]
  const isFee = (each: PlacedTransfer) =>
    each.token === token && each.to === feeAddress && senders.includes(each.from) && each.value > 0n
  return (
    unclaimed.find((each) => each.position > range.after && each.position < range.before && isFee(each))?.value ?? 0n
  )
}

/** A payment that an intermediary made with tokens, by the position of its event. */
interface IntermediaryPayment {
  readonly position: number
  readonly intermediary: Address
  readonly token: Address
}

/** The logs between two positions, neither included. */
interface LogRange {
  readonly after: number
  readonly before: number
}

/**
 * Finds the runs of batches: a batch is given a token, sends its fee before or after its payments, and makes them. The next run of the same batch and
 * token begins where it is given more.
 *
 * @returns the logs of each run, by the position of its last payment
 */
function findBatchRuns(
  transfers: readonly PlacedTransfer[],
  payments: readonly IntermediaryPayment[],
): ReadonlyMap<number, LogRange> {
  const keyOf = (address: Address, token: Address) => `${address} ${token}`
  const byBatch = Map.groupBy(payments, ({ intermediary, token }) => keyOf(intermediary, token))
  const funding = Map.groupBy(
    // Anybody can make a Transfer of 0.
    transfers.filter(({ to, token, value }) => value > 0n && byBatch.has(keyOf(to, token))),
    ({ to, token }) => keyOf(to, token),
  )
  const runs = new Map<number, LogRange>()
  for (const [key, own] of byBatch) {
    let after = -1
    let last: number | undefined
    const steps = [
      ...own.map(({ position }) => ({ position, isPayment: true })),
      ...(funding.get(key) ?? []).map(({ position }) => ({ position, isPayment: false })),
    ].toSorted((a, b) => a.position - b.position)
    for (const { position, isPayment } of steps) {
      if (isPayment) last = position
      else if (last !== undefined) {
        runs.set(last, { after, before: position })
        after = position
        last = undefined
      }
    }
    if (last !== undefined) runs.set(last, { after, before: Number.POSITIVE_INFINITY })
  }
  return runs
}
