import type { Address } from '../domain/address.ts'
import { addressOfTopic, eventTopics, type RpcLog, type TransferEvent } from './decode-events.ts'

/** A `Transfer` and its place among the logs of its transaction. */
export interface PlacedTransfer extends TransferEvent {
  readonly position: number
}

/** The entry points of account abstraction, versions 0.6, 0.7 and 0.8. Anybody else's event of that name says nothing. */
const entryPoints: ReadonlySet<string> = new Set([
  '0x5ff137d4b0fdcd49dca30c7cf57e578a026d2789',
  '0x0000000071727de22e5e9d8baf0edac6f37da032',
  '0x4337084d9e255ff0702461cf8895ce9e3b5ff108',
])

/**
 * Whose tokens a payment was: the sender of the Transfer to the payee, or, where that is a listed intermediary (swap, batch,
 * bridge, single request proxy), whoever funded it in this transaction.
 *
 * @param transfers - all of the transaction, in log order
 * @param payouts - positions of the Transfers by which payments were made, in log order
 * @returns undefined when an intermediary was not funded by a Transfer in this transaction
 */
export function findTokenPayer(
  paid: PlacedTransfer,
  transfers: readonly PlacedTransfer[],
  payouts: readonly number[],
  intermediaries: ReadonlySet<Address>,
): Address | undefined {
  const seen = new Set<Address>()
  let step: PlacedTransfer | undefined = paid
  while (step !== undefined && intermediaries.has(step.from)) {
    if (seen.has(step.from)) return undefined
    seen.add(step.from)
    step = findFunding(step, transfers, payouts)
  }
  return step?.from
}

/**
 * The Transfer that funded what `spent` passes on. A swap takes the payer's token first and gets the other from a pool after
 * that, so it is the first one into the intermediary since its last payout; a batch takes all at once and pays many, so where
 * there is none since, the payout before counts.
 */
function findFunding(
  spent: PlacedTransfer,
  transfers: readonly PlacedTransfer[],
  payouts: readonly number[],
): PlacedTransfer | undefined {
  const into = transfers.filter((transfer) => transfer.to === spent.from && transfer.position < spent.position)
  const ownPayouts = transfers.filter(
    (transfer) =>
      transfer.from === spent.from && transfer.position < spent.position && payouts.includes(transfer.position),
  )
  for (const since of [...ownPayouts.map(({ position }) => position).toReversed(), -1]) {
    const first = into.find((transfer) => transfer.position > since)
    if (first !== undefined) return first
  }
  return undefined
}

/**
 * Whose coins a payment was: the transaction's sender if it called the proxy itself, else the account whose user operation it
 * was, else the Safe that executed it, else the sender.
 *
 * @param position - of the payment's event; operations and Safes report after what they did
 */
export function findNativePayer(
  position: number,
  logs: readonly RpcLog[],
  transaction: { readonly from: Address; readonly to: Address | undefined },
  emitter: Address,
): Address {
  if (transaction.to === emitter) return transaction.from
  const after = logs.slice(position + 1)
  const operation = after.find(
    ({ address, topics }) =>
      topics[0] === eventTopics.userOperation && topics[2] !== undefined && entryPoints.has(address.toLowerCase()),
  )
  if (operation?.topics[2] !== undefined) return addressOfTopic(operation.topics[2])
  const safe = after.find(({ topics }) => topics[0] === eventTopics.safeExecution)
  return safe === undefined ? transaction.from : (safe.address.toLowerCase() as Address)
}
