import type { Migration } from './migration.ts'

/**
 * What was learned of the limits of a chain's nodes, so that a restart does not ask again what was refused before, and how much of a daily
 * budget is spent. A URL may hold a key, so its hash stands for it; the host is for people.
 */
const statements = [
  `create table node_limits (
    chain_id text collate "C" not null,
    url_hash text collate "C" not null,
    host text not null,
    learned jsonb,
    day date,
    used bigint not null default 0,
    primary key (chain_id, url_hash)
  )`,
]

export const nodeLimits: Migration = {
  name: '0015-node-limits',
  async up(knex) {
    for (const statement of statements) await knex.raw(statement)
  },
}
