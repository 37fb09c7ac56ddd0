import type { Knex } from 'knex'
import { bytesToHex, type Hex, hexToBytes } from '../../domain/hex.ts'
import type { AcceptedAs } from '../match/match-event.ts'
import { type AccountEvent, type ChainTransactions, columnsOf, findByEvent } from './account-event.ts'

/** What an operator accepted an event as, and the event as it was then. */
export interface Acceptance {
  readonly as: AcceptedAs
  readonly topic: Hex
  /** The fields that the unmatched event had; amounts as digits in base units. */
  readonly event: Readonly<Record<string, string>>
}

/** Who accepted an event, when and why. */
interface AcceptanceTerms {
  readonly acceptedBy: string
  readonly acceptedAt: Date
  readonly note: string
}

interface Row {
  readonly accepted_as: AcceptedAs
  readonly topic: Buffer
  readonly event: Readonly<Record<string, string>>
}

/** Finds what an account's operators accepted of transactions. @returns by {@link findByEvent} */
export function findAccepted(
  knex: Knex,
  accountId: number,
  transactions: ChainTransactions,
): Promise<Map<string, Acceptance>> {
  const read = ({ accepted_as, topic, event }: Row) => ({ as: accepted_as, topic: bytesToHex(topic), event })
  return findByEvent(knex, 'accepted_events', ['accepted_as', 'topic', 'event'], { accountId, ...transactions }, read)
}

/** Stores an acceptance; replaces an earlier one of the same event. */
export async function storeAcceptance(
  trx: Knex,
  of: AccountEvent,
  { as, topic, event, acceptedBy, acceptedAt, note }: Acceptance & AcceptanceTerms,
): Promise<void> {
  await trx('accepted_events')
    .insert({
      ...columnsOf(of),
      accepted_as: as,
      topic: hexToBytes(topic),
      event: JSON.stringify(event),
      accepted_by: acceptedBy,
      accepted_at: acceptedAt,
      note,
    })
    .onConflict(['account_id', 'chain_id', 'tx_hash', 'event_index'])
    .merge(['accepted_as', 'topic', 'event', 'accepted_by', 'accepted_at', 'note'])
}

export async function deleteAcceptance(trx: Knex, of: AccountEvent): Promise<void> {
  await trx('accepted_events').where(columnsOf(of)).delete()
}
