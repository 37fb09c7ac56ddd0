import type { Migration } from './migration.ts'

/** The part of a process's running calls that nobody takes from a key; null for the usual one. */
export const keyShares: Migration = {
  name: '0022-key-shares',
  locks: [{ table: 'api_keys', mode: 'ACCESS EXCLUSIVE', passes: 0 }],
  async up(knex) {
    await knex.raw('alter table api_keys add column share double precision')
  },
}
