import { type Address, isZeroAddress } from '../../domain/address.ts'
import type { KnownContracts } from './known-contracts.ts'
import type { PaymentEvent, PlacedTransfer } from './transaction-events.ts'

/** Tokens that an intermediary holds and that came from one sender; undefined where the sender is not certain. */
interface Lot {
  readonly sender: Address | undefined
  readonly left: bigint
}

/** What a swap contract received and sold since its last payment, by token. */
interface Trade {
  readonly given: Map<Address, { total: bigint; readonly senders: Set<Address | undefined> }>
  readonly sold: Map<Address, bigint>
}

/** The money that intermediaries and swaps hold while the Transfers of a transaction are read in order. */
interface Flow {
  readonly contracts: KnownContracts
  /** By intermediary and token. */
  readonly lots: Map<string, Lot[]>
  /** By swap contract. */
  readonly trades: Map<Address, Trade>
}

/**
 * Finds who paid the token payments of a transaction: the sender of the claimed Transfer, or whoever gave the money to the intermediary that sent it.
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

/** The sender, unless it is a contract that holds the money of others, or the tokens are minted and so had no owner. */
function plainSender({ contracts }: Flow, { from }: PlacedTransfer): Address | undefined {
  const isPlain = !contracts.isIntermediary(from) && !contracts.isSwap(from) && !contracts.isExecutor(from)
  return isPlain && !isZeroAddress(from) ? from : undefined
}

/** Whose money a Transfer moves. Subtracts it from what the sender holds of others. */
function originOf(flow: Flow, transfer: PlacedTransfer, isPayment: boolean): Address | undefined {
  const { contracts } = flow
  if (contracts.isSwap(transfer.from)) return sell(flow, transfer, isPayment)
  return contracts.isIntermediary(transfer.from) ? spend(flow, transfer) : plainSender(flow, transfer)
}

/** Takes a Transfer out of an intermediary's lots. The sender is certain where all lots have the same one and cover the Transfer. */
function spend({ lots }: Flow, { from, token, value }: PlacedTransfer): Address | undefined {
  const held = (lots.get(`${from} ${token}`) ?? []).filter(({ left }) => left > 0n)
  const senders = new Set(held.map(({ sender }) => sender))
  const sum = held.reduce((total, { left }) => total + left, 0n)
  const sender = senders.size === 1 && sum >= value ? held[0]?.sender : undefined
  // With two senders it is unknown whose money went, and so whose is left.
  const rest = sum > value ? [{ sender, left: sum - value }] : []
  lots.set(`${from} ${token}`, rest)
  return sender
}

/** Finds who paid through a swap contract: whoever gave it all tokens that it sold since its last payment. */
function sell({ trades }: Flow, { from, token, value }: PlacedTransfer, isPayment: boolean): Address | undefined {
  const trade = trades.get(from)
  if (trade === undefined) return undefined
  const { given, sold } = trade
  if (!isPayment) {
    // What leaves before anything came in is change from the payment before.
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
