import type { Payment } from '../../domain/payment.ts'

type Keys = Pick<Payment, 'id' | 'network' | 'txHash' | 'eventIndex'>

/**
 * Splits a batch into rounds without repeated ids or events. Storing a round at once then gives the same result as storing its payments
 * one after the other: of two payments with one id or event, the earlier is in an earlier round.
 *
 * @returns places in the batch
 */
export function splitRounds(batch: readonly Keys[]): number[][] {
  const rounds: number[][] = []
  /** For each id and event, the round after the last one that holds it. */
  const nextRound = new Map<string, number>()
  for (const [place, payment] of batch.entries()) {
    const event = eventOf(payment)
    const round = Math.max(nextRound.get(payment.id) ?? 0, event === undefined ? 0 : (nextRound.get(event) ?? 0))
    ;(rounds[round] ??= []).push(place)
    nextRound.set(payment.id, round + 1)
    if (event !== undefined) nextRound.set(event, round + 1)
  }
  return rounds
}

/** Identifies the payment's event; undefined without transaction hash or event index. */
export function eventOf({ txHash, eventIndex, network }: Omit<Keys, 'id'>): string | undefined {
  return txHash === undefined || eventIndex === undefined ? undefined : `${txHash} ${eventIndex} ${network}`
}
