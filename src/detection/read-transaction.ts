import { type Address, ZERO_ADDRESS } from '../domain/address.ts'
import type { Hex } from '../domain/hex.ts'
import {
  decodeConversionLog,
  decodeFeeProxyLog,
  decodeTransferLog,
  type FeeProxyEvent,
  isFeeProxyLog,
  type RpcLog,
} from './decode-events.ts'
import { findNativePayer, findTokenPayer, type PlacedTransfer } from './payer.ts'

/** What a transaction came to. */
export interface TransactionReceipt {
  readonly txHash: Hex
  readonly blockHash: Hex
  readonly blockNumber: number
  readonly from: Address
  /** Absent: it created a contract. */
  readonly to?: Address
  readonly gasUsed: bigint
  /** In wei. Absent: the node does not tell. */
  readonly effectiveGasPrice?: bigint
  /** In wei; what some second layers charge for the first. */
  readonly l1Fee?: bigint
  readonly logs: readonly RpcLog[]
}

/** A payment event of a followed contract, with what its transaction tells of it. */
export interface SeenEvent extends FeeProxyEvent {
  /** 0-based among all such events of the transaction, whoever emitted them. */
  readonly eventIndex: number
  /** What `to` received, in base units of token or coin. */
  readonly received: bigint
  /** What `feeAddress` received, likewise. 0 where the fee was charged to nobody. */
  readonly feeReceived: bigint
  /** What `feeAddress` received beside it from the contract that swapped and then paid; no event tells of that. */
  readonly swapFeeReceived: bigint
  readonly payer?: Address
  /**
   * Whose balance the proxy took the money from: `from` of the claimed Transfer; of coins, the direct caller of the proxy.
   * Absent where that is not certain.
   */
  readonly paidFrom?: Address | undefined
  /** The proxy was called by a bridge, so that whoever paid is on another chain. */
  readonly isCarried: boolean
  /** In the invoice's currency. */
  readonly conversion?: { readonly amount: bigint; readonly currency: Address; readonly feeAmount: bigint }
}

/** Which contracts count, and whose money passes through others. */
export interface FollowedContracts {
  readonly contracts: ReadonlySet<Address>
  /** Contracts that pay with what somebody else gave them. */
  readonly intermediaries: ReadonlySet<Address>
  /** Contracts through which bridges pay. */
  readonly executors: ReadonlySet<Address>
}

/** The Transfers behind an event of a token. */
interface Claim {
  readonly paidBy?: PlacedTransfer | undefined
  readonly feePaidBy?: PlacedTransfer | undefined
}

interface Draft {
  readonly event: FeeProxyEvent
  readonly eventIndex: number
  readonly position: number
  readonly claim: Claim
  conversion: SeenEvent['conversion']
}

/**
 * Reads the payment events of a transaction.
 *
 * A token's event can say more than the payee got (tokens that keep a part of each transfer), so what counts is the Transfer
 * behind it: the nearest of that token to the payee before the event that no other event has claimed.
 */
export function readTransaction(receipt: TransactionReceipt, followed: FollowedContracts): SeenEvent[] {
  const transfers: PlacedTransfer[] = []
  const claimed = new Set<number>()
  const drafts: Draft[] = []
  let eventIndex = 0
  for (const [position, log] of receipt.logs.entries()) {
    const transfer = decodeTransferLog(log)
    if (transfer !== undefined) transfers.push({ ...transfer, position })
    const index = isFeeProxyLog(log) ? eventIndex++ : eventIndex
    if (!followed.contracts.has(log.address.toLowerCase() as Address)) continue
    const event = decodeFeeProxyLog(log)
    if (event !== undefined) {
      const claim = claimTransfers(event, transfers, claimed)
      drafts.push({ event, eventIndex: index, position, claim, conversion: undefined })
    }
    addConversion(log, drafts)
  }
  const payouts = drafts.flatMap(({ claim }) => (claim.paidBy === undefined ? [] : [claim.paidBy.position]))
  return drafts.map((draft, i) => {
    const nextPosition = drafts[i + 1]?.position ?? receipt.logs.length
    return finishEvent(draft, { receipt, transfers, claimed, nextPosition, payouts, followed })
  })
}

/** A conversion proxy reports right after the fee proxy's code that it ran in its own name. */
function addConversion(log: RpcLog, drafts: readonly Draft[]): void {
  const conversion = decodeConversionLog(log)
  if (conversion === undefined) return
  const { emitter, topic, amount, currency, feeAmount } = conversion
  const owner = drafts.findLast(({ event }) => event.emitter === emitter && event.topic === topic)
  if (owner !== undefined && owner.conversion === undefined) owner.conversion = { amount, currency, feeAmount }
}

/** The proxy moves the amount, then the fee: where both go to one address, the nearer Transfer is the fee's. */
function claimTransfers(event: FeeProxyEvent, transfers: readonly PlacedTransfer[], claimed: Set<number>): Claim {
  if (event.token === undefined) return {}
  const claim = (to: Address) => {
    const found = transfers.findLast(
      (transfer) => transfer.token === event.token && transfer.to === to && !claimed.has(transfer.position),
    )
    if (found !== undefined) claimed.add(found.position)
    return found
  }
  const feePaidBy = chargesFee(event) ? claim(event.feeAddress) : undefined
  return { paidBy: claim(event.to), feePaidBy }
}

/** With no address, an event's fee was charged to nobody. */
function chargesFee({ feeAmount, feeAddress }: FeeProxyEvent): boolean {
  return feeAmount > 0n && feeAddress !== ZERO_ADDRESS
}

const nativeFee = (event: FeeProxyEvent) => (chargesFee(event) ? event.feeAmount : 0n)

/** ERC20SwapToPay sends its fee, which it bought with the rest, right after it has paid. */
function swapFeeOf(
  { event: { token, feeAddress }, position, claim: { paidBy } }: Draft,
  { transfers, claimed, nextPosition, followed }: TransactionContext,
): bigint {
  if (paidBy === undefined || !followed.intermediaries.has(paidBy.from) || feeAddress === ZERO_ADDRESS) return 0n
  const isAfter = (place: number) => place > position && place < nextPosition && !claimed.has(place)
  const sent = transfers.find(
    (each) => each.token === token && each.from === paidBy.from && each.to === feeAddress && isAfter(each.position),
  )
  return sent?.value ?? 0n
}

interface TransactionContext {
  readonly receipt: TransactionReceipt
  readonly transfers: readonly PlacedTransfer[]
  /** Positions of those behind an event. */
  readonly claimed: ReadonlySet<number>
  /** Of the next event, or where the logs end. */
  readonly nextPosition: number
  readonly payouts: readonly number[]
  readonly followed: FollowedContracts
}

function finishEvent(draft: Draft, context: TransactionContext): SeenEvent {
  const { receipt, transfers, payouts, followed } = context
  const { event, eventIndex, position, conversion } = draft
  const { paidBy, feePaidBy } = draft.claim
  const sender = { from: receipt.from, to: receipt.to }
  // The proxy pulls from whoever calls it.
  const isCarried = paidBy !== undefined && followed.executors.has(paidBy.from)
  const payer =
    event.token === undefined
      ? findNativePayer(position, receipt.logs, sender, event.emitter)
      : paidBy && !isCarried
        ? findTokenPayer(paidBy, transfers, payouts, followed.intermediaries)
        : undefined
  return {
    ...event,
    eventIndex,
    received: event.token === undefined ? event.amount : (paidBy?.value ?? 0n),
    feeReceived: event.token === undefined ? nativeFee(event) : (feePaidBy?.value ?? 0n),
    swapFeeReceived: swapFeeOf(draft, context),
    ...(payer === undefined ? {} : { payer }),
    paidFrom: event.token === undefined ? directCaller(receipt, event.emitter) : paidBy?.from,
    isCarried,
    ...(conversion === undefined ? {} : { conversion }),
  }
}

/** The sender, if he called the proxy himself. Logs alone do not tell who else called it. */
function directCaller({ from, to }: TransactionReceipt, proxy: Address): Address | undefined {
  return to === proxy ? from : undefined
}
