import type { Migration } from './migration.ts'

/** The origins of publishable keys; null for secret ones. */
export const publishableKeys: Migration = {
  name: '0017-publishable-keys',
  locks: [{ table: 'api_keys', mode: 'ACCESS EXCLUSIVE', passes: 0 }],
  async up(knex) {
    await knex.raw('alter table api_keys add column origins text[]')
  },
}
