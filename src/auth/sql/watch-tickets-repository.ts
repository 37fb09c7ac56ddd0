import type { Knex } from 'knex'
import type { Account } from '../../domain/account.ts'

/** A ticket as it is stored: its hash alone, with what it stands for. */
export interface StoredTicket {
  /** 32 bytes. */
  readonly ticketHash: Buffer
  /** The id of the key that it was asked for with. */
  readonly keyId: string
  readonly account: Account
  readonly expiresAt: Date
}

/** Tickets of all processes on the database. */
export interface WatchTicketsRepository {
  /** Stores a ticket, and removes those that nobody has used in their time. */
  insert(ticket: StoredTicket, now: Date): Promise<void>
  /**
   * Takes a ticket: of all that try to, in whatever process, one gets it.
   *
   * @returns undefined when there is none that is still good
   */
  take(ticketHash: Buffer, now: Date): Promise<Pick<StoredTicket, 'keyId' | 'account'> | undefined>
}

export function createWatchTicketsRepository(knex: Knex): WatchTicketsRepository {
  return {
    async insert({ ticketHash, keyId, account, expiresAt }, now) {
      await knex('watch_tickets').where('expires_at', '<', now).delete()
      await knex('watch_tickets').insert({
        ticket_hash: ticketHash,
        key_id: keyId,
        account_id: account.id,
        account_name: account.name,
        expires_at: expiresAt,
      })
    },
    async take(ticketHash, now) {
      const [taken] = await knex('watch_tickets')
        .where({ ticket_hash: ticketHash })
        .where('expires_at', '>', now)
        .delete()
        .returning<{ key_id: string; account_id: number; account_name: string }[]>([
          'key_id',
          'account_id',
          'account_name',
        ])
      return taken && { keyId: taken.key_id, account: { id: taken.account_id, name: taken.account_name } }
    },
  }
}
