import type { Migration } from './migration.ts'

/** Contracts that Request's factory made, each to pay one request: what they pay with, somebody else gave them. */
const statements = [
  `create table single_request_proxies (
    chain_id text collate "C" not null,
    address bytea not null,
    block_number bigint not null,
    primary key (chain_id, address)
  )`,
  `create index single_request_proxies_block on single_request_proxies (chain_id, block_number)`,
]

export const singleRequestProxies: Migration = {
  name: '0011-single-request-proxies',
  async up(knex) {
    for (const statement of statements) await knex.raw(statement)
  },
}
