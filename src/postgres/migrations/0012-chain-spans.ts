import type { Migration } from './migration.ts'

/**
 * Blocks that are read beside following. What was still to be read of contracts that had been added becomes spans. Chains that were followed before
 * have been read from the first block of their contracts, so they start at block 0.
 */
export const chainSpans: Migration = {
  name: '0012-chain-spans',
  async up(knex) {
    await knex.raw(`create table chain_spans (
      chain_id text collate "C" not null,
      address bytea not null,
      from_block bigint not null,
      next_block bigint not null,
      until_block bigint not null,
      read_time timestamptz(0),
      primary key (chain_id, address, from_block)
    )`)
    await knex.raw(`insert into chain_spans (chain_id, address, from_block, next_block, until_block)
      select chain_id, address, greatest(from_block, 1), filled_block + 1, fill_until
      from chain_contracts where filled_block < fill_until`)
    await knex.raw('alter table chain_contracts drop column filled_block, drop column fill_until')
    await knex.raw(`alter table chain_state
      add column start_block bigint,
      add column start_since timestamptz(3),
      add column wanted_since timestamptz(3)`)
    await knex.raw(`update chain_state set start_block = 0, start_since = to_timestamp(0)`)
  },
}
