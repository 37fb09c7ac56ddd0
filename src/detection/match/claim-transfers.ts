import type { FeeProxyEvent, TransferEvent } from '../../contracts/decode-events.ts'
import { type Address, ZERO_ADDRESS } from '../../domain/address.ts'

/** A `Transfer` and its place among the logs of its transaction. */
export interface PlacedTransfer extends TransferEvent {
  readonly position: number
}

/** The Transfers by which an event of a token was paid. */
export interface Claim {
  readonly paidBy?: PlacedTransfer | undefined
  readonly feePaidBy?: PlacedTransfer | undefined
}

/** Finds the Transfers behind the events of one transaction. Transfers and events are given in log order. */
export interface TransferClaims {
  add(transfer: PlacedTransfer): void
  /**
   * Claims the Transfers of an event among those added so far. The proxies log the Transfer to the payee, then that of the fee, then the
   * event, so the fee's is claimed first. Both have one sender: the caller of the proxy.
   *
   * Transfers of 0 are claimed like others. If they were skipped, an event of 0 could claim somebody else's Transfer to the same payee.
   */
  claim(event: FeeProxyEvent): Claim
  isClaimed(transfer: PlacedTransfer): boolean
}

/** Makes the claims of one transaction, empty. */
export function createTransferClaims(): TransferClaims {
  const byTarget = new Map<string, PlacedTransfer[]>()
  const claimed = new Set<number>()
  const keyOf = (token: Address, to: Address) => `${token} ${to}`

  /** The nearest unclaimed one that fits. One that moved more than the event says is not the event's, and nothing is claimed. */
  function claimNearest(
    target: string,
    most: bigint,
    fits: (transfer: PlacedTransfer) => boolean = () => true,
  ): PlacedTransfer | undefined {
    const nearest = byTarget.get(target)?.findLast((each) => !claimed.has(each.position) && fits(each))
    if (nearest === undefined || nearest.value > most) return undefined
    claimed.add(nearest.position)
    return nearest
  }

  return {
    add(transfer) {
      const key = keyOf(transfer.token, transfer.to)
      const known = byTarget.get(key)
      if (known === undefined) byTarget.set(key, [transfer])
      else known.push(transfer)
    },
    claim(event) {
      const { token, to, amount, feeAmount, feeAddress } = event
      if (token === undefined) return {}
      const feePaidBy = chargesFee(event) ? claimNearest(keyOf(token, feeAddress), feeAmount) : undefined
      const isOfSameSender = ({ from, position }: PlacedTransfer) =>
        feePaidBy === undefined || (from === feePaidBy.from && position < feePaidBy.position)
      return { paidBy: claimNearest(keyOf(token, to), amount, isOfSameSender), feePaidBy }
    },
    isClaimed: ({ position }) => claimed.has(position),
  }
}

/** Whether a fee was charged to somebody. With no address, a token's event only claims so. */
function chargesFee({ feeAmount, feeAddress }: FeeProxyEvent): boolean {
  return feeAmount > 0n && feeAddress !== ZERO_ADDRESS
}
