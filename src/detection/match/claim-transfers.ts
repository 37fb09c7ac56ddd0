import type { FeeProxyEvent, TransferEvent } from '../../contracts/decode-events.ts'
import { type Address, ZERO_ADDRESS } from '../../domain/address.ts'

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
