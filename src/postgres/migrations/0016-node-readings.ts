import type { Migration } from './migration.ts'

/**
 * Which node gave which blocks since it last passed a check of its logs, and blocks that are to be read again: because a node that gave them was found to
 * answer wrongly (`is_wrong`), or because a process stopped before it had compared them.
 */
const statements = [
  `create table node_readings (
    chain_id text collate "C" not null,
    node text collate "C" not null,
    lane text not null,
    from_block bigint not null,
    to_block bigint not null,
    primary key (chain_id, node, lane, from_block)
  )`,
  `create table pending_rereads (
    chain_id text collate "C" not null,
    node text collate "C" not null,
    from_block bigint not null,
    to_block bigint not null,
    is_wrong boolean not null,
    primary key (chain_id, node, from_block)
  )`,
]

export const nodeReadings: Migration = {
  name: '0016-node-readings',
  async up(knex) {
    for (const statement of statements) await knex.raw(statement)
  },
}
