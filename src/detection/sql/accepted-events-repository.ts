import type { Knex } from 'knex'
import { bytesToHex, type Hex, hexToBytes } from '../../domain/hex.ts'
import type { AcceptedAs } from '../match/match-event.ts'
import type { ChainTransactions } from './detection-repository.ts'

/** What an operator has accepted an event as, and the event as it was then. */
export interface Acceptance {
  readonly as: AcceptedAs
  readonly topic: Hex
  /** As it stood among the unmatched events; amounts as digits in base units. */
  readonly event: Readonly<Record<string, string>>
}

/** Which event of which account. */
export interface AcceptedEvent {
  readonly accountId: number
  /** CAIP-2. */
  readonly chainId: string
  readonly txHash: Hex
  readonly eventIndex: number
}

/** Who accepted it, when and why. */
export interface AcceptanceTerms {
  readonly acceptedBy: string
  readonly acceptedAt: Date
  readonly note: string
}

interface Row {
  readonly tx_hash: Buffer
  readonly event_index: number
  readonly accepted_as: AcceptedAs
  readonly topic: Buffer
  readonly event: Readonly<Record<string, string>>
}

/** The key of an event among those of a chain. */
export function acceptanceKeyOf(txHash: Hex, eventIndex: number): string {
  return `${txHash} ${eventIndex}`
}

/** What is accepted of transactions, by {@link acceptanceKeyOf}. */
export async function findAccepted(
  knex: Knex,
  accountId: number,
  { chainId, txHashes }: ChainTransactions,
): Promise<Map<string, Acceptance>> {
  const { rows } = await knex.raw<{ rows: Row[] }>(
    `select tx_hash, event_index, accepted_as, topic, event from accepted_events
     where account_id = ? and chain_id = ? and tx_hash = any(?)`,
    [accountId, chainId, txHashes.map(hexToBytes)],
  )
  return new Map(
    rows.map(({ tx_hash, event_index, accepted_as, topic, event }) => [
      acceptanceKeyOf(bytesToHex(tx_hash), event_index),
      { as: accepted_as, topic: bytesToHex(topic), event },
    ]),
  )
}

/** Stores an acceptance, over an earlier one of the same event. */
export async function storeAcceptance(
  trx: Knex,
  of: AcceptedEvent,
  { as, topic, event, acceptedBy, acceptedAt, note }: Acceptance & AcceptanceTerms,
): Promise<void> {
  await trx('accepted_events')
    .insert({
      account_id: of.accountId,
      chain_id: of.chainId,
      tx_hash: hexToBytes(of.txHash),
      event_index: of.eventIndex,
      accepted_as: as,
      topic: hexToBytes(topic),
      event: JSON.stringify(event),
      accepted_by: acceptedBy,
      accepted_at: acceptedAt,
      note,
    })
    .onConflict(['account_id', 'chain_id', 'tx_hash', 'event_index'])
    .merge()
}

/** Takes an acceptance back. @returns whether there was one */
export async function deleteAcceptance(
  trx: Knex,
  { accountId, chainId, txHash, eventIndex }: AcceptedEvent,
): Promise<boolean> {
  const deleted = await trx('accepted_events')
    .where({ account_id: accountId, chain_id: chainId, tx_hash: hexToBytes(txHash), event_index: eventIndex })
    .delete()
  return deleted > 0
}
