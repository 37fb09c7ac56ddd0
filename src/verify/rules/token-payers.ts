import { type Address, isZeroAddress } from '../../domain/address.ts'
import type { KnownContracts } from './known-contracts.ts'
import type { PaymentEvent, PlacedTransfer } from './transaction-events.ts'

/** Money that an intermediary holds of one sender. The sender is absent where it is not certain. */
interface Lot {
  readonly sender: Address | undefined
  readonly left: bigint
}

/** What a swap contract was given and gave away since its last payment, by token. */
interface Trade {
  readonly given: Map<Address, { total: bigint; readonly senders: Set<Address | undefined> }>
  readonly sold: Map<Address, bigint>
}

/** Whose tokens moved with each Transfer of a transaction. */
interface Flow {
  readonly contracts: KnownContracts
  /** By intermediary and token. */
  readonly lots: Map<string, Lot[]>
  /** By swap contract. */
  readonly trades: Map<Address, Trade>
}

/**
 * Who paid the token payments of a transaction: the sender of the claimed Transfer, or who gave the money to the intermediary that sent it.
 *
 * @returns by the event's index; absent where it is not certain
 */
export function findTokenPayers(
  events: readonly PaymentEvent[],
  transfers: readonly PlacedTransfer[],
  contracts: KnownContracts,
): Map<number, Address> {
  const payouts = new Map(
    events.flatMap((event) =>
      event.claimed === undefined ? [] : [[event.claimed.logPlace, event.eventIndex] as const],
    ),
  )
  const flow: Flow = { contracts, lots: new Map(), trades: new Map() }
  const payers = new Map<number, Address>()
  for (const transfer of transfers) {
    // A claimed Transfer is of the event's token, which need not be listed: its payment is then unmatched anyway.
    const moved = transfer.value > 0n && transfer.from !== transfer.to && contracts.isListed(transfer.token)
    const index = payouts.get(transfer.logPlace)
    const origin = moved ? originOf(flow, transfer, index !== undefined) : plainSender(flow, transfer)
    if (moved) receive(flow, transfer, origin)
    if (index !== undefined && origin !== undefined) payers.set(index, origin)
  }
  return payers
}

/** A sender that holds no money of others. What is minted had no owner before. */
function plainSender({ contracts }: Flow, { from }: PlacedTransfer): Address | undefined {
  const isPlain = !contracts.isIntermediary(from) && !contracts.isSwap(from) && !contracts.isExecutor(from)
  return isPlain && !isZeroAddress(from) ? from : undefined
}

/** Whose money a Transfer moves. Takes it out of what the sender holds of others. */
function originOf(flow: Flow, transfer: PlacedTransfer, isPayment: boolean): Address | undefined {
  const { contracts } = flow
  if (contracts.isSwap(transfer.from)) return sell(flow, transfer, isPayment)
  return contracts.isIntermediary(transfer.from) ? spend(flow, transfer) : plainSender(flow, transfer)
}

/** Uses up the lots of an intermediary. Their sender is certain where there is one alone and his lots cover the Transfer. */
function spend({ lots }: Flow, { from, token, value }: PlacedTransfer): Address | undefined {
  const held = (lots.get(`${from} ${token}`) ?? []).filter(({ left }) => left > 0n)
  const senders = new Set(held.map(({ sender }) => sender))
  const sum = held.reduce((total, { left }) => total + left, 0n)
  const sender = senders.size === 1 && sum >= value ? held[0]?.sender : undefined
  // Of two senders it is not known whose money went, so whose money is left is not known either.
  const rest = sum > value ? [{ sender, left: sum - value }] : []
  lots.set(`${from} ${token}`, rest)
  return sender
}

/** A swap contract pays with what it bought: who gave the tokens that it sold since its last payment, and enough of them. */
function sell({ trades }: Flow, { from, token, value }: PlacedTransfer, isPayment: boolean): Address | undefined {
  const trade = trades.get(from)
  if (trade === undefined) return undefined
  const { given, sold } = trade
  if (!isPayment) {
    // What leaves before any came in is change of the payment before.
    if (given.has(token)) sold.set(token, (sold.get(token) ?? 0n) + value)
    return undefined
  }
  trades.delete(from)
  if ((given.get(token)?.total ?? 0n) < value) return undefined
  const others = [...sold].filter(([each]) => each !== token)
  const isCovered = others.every(([each, total]) => total <= (given.get(each)?.total ?? 0n))
  const senders = new Set(others.flatMap(([each]) => [...(given.get(each)?.senders ?? [])]))
  return isCovered && senders.size === 1 ? [...senders][0] : undefined
}

function receive(
  { contracts, lots, trades }: Flow,
  { to, token, value }: PlacedTransfer,
  sender: Address | undefined,
): void {
  if (contracts.isSwap(to)) {
    const trade: Trade = trades.get(to) ?? { given: new Map(), sold: new Map() }
    const given = trade.given.get(token) ?? { total: 0n, senders: new Set<Address | undefined>() }
    given.total += value
    trade.given.set(token, { ...given, senders: given.senders.add(sender) })
    trades.set(to, trade)
  } else if (contracts.isIntermediary(to)) {
    const key = `${to} ${token}`
    lots.set(key, [...(lots.get(key) ?? []), { sender, left: value }])
  }
}
