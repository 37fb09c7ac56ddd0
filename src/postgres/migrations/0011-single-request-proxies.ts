import type { Migration } from './migration.ts'

/** Contracts created by Request's factory, each to pay one request with money that somebody else sent to it. */
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
