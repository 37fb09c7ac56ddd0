import type { Address } from '../../domain/address.ts'
import type { PlacedTransfer } from './claim-transfers.ts'

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
export function findBatchRuns(
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
