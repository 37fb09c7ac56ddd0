import type { Migration } from './migration.ts'

/**
 * A directory of tickets. A browser's EventSource cannot send headers, so a ticket in the URL opens one watch. A ticket expires after a
 * minute.
 */
const statements = [
  `create table watch_tickets (
    ticket_hash bytea primary key,
    key_id text collate "C" not null,
    account_id integer not null,
    account_name text collate "C" not null,
    expires_at timestamptz(3) not null
  )`,
  `create index watch_tickets_expiry on watch_tickets (expires_at)`,
]

export const watchTickets: Migration = {
  name: '0005-watch-tickets',
  async up(knex) {
    for (const statement of statements) await knex.raw(statement)
  },
}
