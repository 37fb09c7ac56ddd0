import type { FeeProxyEvent, TransferEvent } from '../../contracts/decode-events.ts'
import { type Address, ZERO_ADDRESS } from '../../domain/address.ts'
import type { FollowedContracts } from './followed-contracts.ts'

/** Whose money an intermediary spent, by the position of the Transfer that spent it. Absent where that is not certain. */
export type MoneySources = ReadonlyMap<number, Address>

/** What one intermediary received and has not spent yet. An owner that is undefined is unknown. */
interface Holdings {
  receive(transfer: PlacedTransfer, owner: Address | undefined): void
  /** @returns whose money was spent; undefined where that is not certain */
  spend(transfer: PlacedTransfer, isPayment: boolean): Address | undefined
}

/**
 * Follows tokens through intermediaries by value: what comes in is a lot of its sender, what goes out uses lots up, whether it is a payment, a
 * fee or change. Money that an intermediary held before the transaction has no known owner.
 *
 * Left out are Transfers of 0, which anybody can make in anybody's name, and Transfers of tokens that are not listed, whose contract can log
 * anything.
 *
 * @param transfers - of one transaction, in log order
 * @param isPayment - whether a Transfer paid the payee of a payment event
 */
export function followMoney(
  transfers: readonly PlacedTransfer[],
  isPayment: (transfer: PlacedTransfer) => boolean,
  followed: FollowedContracts,
): MoneySources {
  const holdingsByAddress = new Map<Address, Holdings>()
  const sources = new Map<number, Address>()

  const holdingsOf = (address: Address): Holdings | undefined => {
    if (!followed.intermediaries.has(address)) return undefined
    const holdings =
      holdingsByAddress.get(address) ?? (followed.swaps.has(address) ? createSwapHoldings() : createHoldings())
    holdingsByAddress.set(address, holdings)
    return holdings
  }
  const ownerOf = (transfer: PlacedTransfer): Address | undefined => {
    const { from } = transfer
    const holdings = holdingsOf(from)
    if (holdings !== undefined) return holdings.spend(transfer, isPayment(transfer))
    // A bridge's executor pays with money from another chain; minted tokens had no owner before.
    return followed.executors.has(from) || from === ZERO_ADDRESS ? undefined : from
  }

  for (const transfer of transfers) {
    const { token, from, to, value, position } = transfer
    if (value === 0n || from === to || !followed.tokens.has(token)) continue
    const owner = ownerOf(transfer)
    if (owner !== undefined && followed.intermediaries.has(from)) sources.set(position, owner)
    holdingsOf(to)?.receive(transfer, owner)
  }
  return sources
}

interface Lots {
  total: bigint
  /** Who put in something that may be unspent. */
  readonly owners: Set<Address | undefined>
}

/**
 * Makes the holdings of a contract that passes on the token it receives. With two owners it is unknown whose money went out first, so both remain owners
 * until everything is spent.
 */
function createHoldings(): Holdings {
  const lotsOf = new Map<Address, Lots>()
  return {
    receive: ({ token, value }, owner) => addLot(lotsOf, token, value, owner),
    spend({ token, value }) {
      const lots = lotsOf.get(token)
      if (lots === undefined) return undefined
      const isCovered = value <= lots.total
      const owner = isCovered ? onlyOf(lots.owners) : undefined
      lots.total -= value
      if (lots.total <= 0n) lotsOf.delete(token)
      return owner
    },
  }
}

/**
 * Makes the holdings of a contract that sells one token and pays with another. The token it pays with came from pools, so the owner is the one sender
 * of the token it sold since its last payment.
 */
function createSwapHoldings(): Holdings {
  const received = new Map<Address, Lots>()
  const sent = new Map<Address, bigint>()
  return {
    receive: ({ token, value }, owner) => addLot(received, token, value, owner),
    spend({ token, value }, isPayment) {
      const owner = sellerOf(token, value)
      // A token that leaves before any came in is change of the payment before.
      if (received.has(token)) sent.set(token, (sent.get(token) ?? 0n) + value)
      if (isPayment) {
        received.clear()
        sent.clear()
      }
      return owner
    },
  }

  function sellerOf(token: Address, value: bigint): Address | undefined {
    const bought = received.get(token)
    if (bought === undefined || bought.total < value) return undefined
    const sold = [...sent].filter(([each]) => each !== token)
    const isCovered = sold.every(([each, total]) => total <= (received.get(each)?.total ?? 0n))
    const sellers = new Set(sold.flatMap(([each]) => [...(received.get(each)?.owners ?? [])]))
    return isCovered ? onlyOf(sellers) : undefined
  }
}

function addLot(lotsOf: Map<Address, Lots>, token: Address, value: bigint, owner: Address | undefined): void {
  const lots = lotsOf.get(token) ?? { total: 0n, owners: new Set() }
  lots.total += value
  lots.owners.add(owner)
  lotsOf.set(token, lots)
}

/** The owner, if there is exactly one and it is known. */
function onlyOf(owners: ReadonlySet<Address | undefined>): Address | undefined {
  return owners.size === 1 ? [...owners][0] : undefined
}

/** A `Transfer` and its place among the logs of its transaction. */
export interface PlacedTransfer extends TransferEvent {
  readonly position: number
}

/** The Transfers by which a token payment was made. */
export interface Claim {
  readonly paidBy?: PlacedTransfer | undefined
  readonly feePaidBy?: PlacedTransfer | undefined
}

/** Makes what assigns the Transfers of one transaction to its payment events. Both are given in log order. */
export function createTransferClaims() {
  const byReceiver = new Map<string, PlacedTransfer[]>()
  const claimed = new Set<number>()
  const keyOf = (token: Address, to: Address) => `${token} ${to}`

  /** Claims the nearest unclaimed Transfer that fits; none if that one moved more than the event says, since then it is not the event's. */
  function claimNearest(
    receiver: string,
    maxValue: bigint,
    fits: (transfer: PlacedTransfer) => boolean = () => true,
  ): PlacedTransfer | undefined {
    const nearest = byReceiver.get(receiver)?.findLast((each) => !claimed.has(each.position) && fits(each))
    if (nearest === undefined || nearest.value > maxValue) return undefined
    claimed.add(nearest.position)
    return nearest
  }

  return {
    add(transfer: PlacedTransfer): void {
      const key = keyOf(transfer.token, transfer.to)
      const known = byReceiver.get(key)
      if (known === undefined) byReceiver.set(key, [transfer])
      else known.push(transfer)
    },
    /**
     * Claims the Transfers of an event among those added so far. The proxies log the Transfer to the payee, then that of the fee, then the
     * event, so the fee's is claimed first. Both have the same sender: the caller of the proxy.
     *
     * Transfers of 0 are claimed like others. If they were skipped, an event of 0 could claim somebody else's Transfer to the same payee.
     */
    claim(event: FeeProxyEvent): Claim {
      const { token, to, amount, feeAmount, feeAddress } = event
      if (token === undefined) return {}
      const feePaidBy = chargesFee(event) ? claimNearest(keyOf(token, feeAddress), feeAmount) : undefined
      const hasSameSender = ({ from, position }: PlacedTransfer) =>
        feePaidBy === undefined || (from === feePaidBy.from && position < feePaidBy.position)
      return { paidBy: claimNearest(keyOf(token, to), amount, hasSameSender), feePaidBy }
    },
    isClaimed: ({ position }: PlacedTransfer) => claimed.has(position),
  }
}

/** With fee address 0, no fee was charged, whatever `feeAmount` a token's event has. */
function chargesFee({ feeAmount, feeAddress }: FeeProxyEvent): boolean {
  return feeAmount > 0n && feeAddress !== ZERO_ADDRESS
}
