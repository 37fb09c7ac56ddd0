import type { Payment } from '../domain/payment.ts'
import { eventOf } from './new-payments.ts'

/**
 * Splits a batch into rounds, in each of which no id and no event stands twice, so that a round can be stored at once and yet as if its
 * payments came one after the other: of two with one id or event the earlier is in the earlier round.
 *
 * @returns places in the batch
 */
export function splitRounds(batch: readonly Payment[]): number[][] {
  const rounds: number[][] = []
  /** The round behind the last one that holds the key. */
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
