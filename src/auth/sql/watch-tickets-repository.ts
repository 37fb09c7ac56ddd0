import type { Knex } from 'knex'
import type { Account } from '../../domain/account.ts'

/** A ticket as it is stored: its hash, and the key and account it acts for. */
export interface StoredTicket {
  /** 32 bytes. */
  readonly ticketHash: Buffer
  /** The id of the key that it was issued to. */
  readonly keyId: string
  readonly account: Account
  readonly expiresAt: Date
}

export type WatchTicketsRepository = ReturnType<typeof createWatchTicketsRepository>

/** Watch tickets, shared by all processes on the database. */
export function createWatchTicketsRepository(knex: Knex) {
  return {
    /** Stores a ticket and deletes expired ones. */
    async insert({ ticketHash, keyId, account, expiresAt }: StoredTicket, now: Date): Promise<void> {
      await knex('watch_tickets').where('expires_at', '<', now).delete()
      await knex('watch_tickets').insert({
        ticket_hash: ticketHash,
        key_id: keyId,
        account_id: account.id,
        account_name: account.name,
        expires_at: expiresAt,
      })
    },
    /**
     * Uses a ticket up: of concurrent calls, in any process, exactly one succeeds.
     *
     * @returns undefined when there is no such ticket, or it has expired
     */
    async take(ticketHash: Buffer, now: Date): Promise<Pick<StoredTicket, 'keyId' | 'account'> | undefined> {
      const [taken] = await knex('watch_tickets')
        .where({ ticket_hash: ticketHash })
        .where('expires_at', '>', now)
        .delete()
        .returning<{ key_id: string; account_id: number; account_name: string }[]>('*')
      return taken && { keyId: taken.key_id, account: { id: taken.account_id, name: taken.account_name } }
    },
  }
}
