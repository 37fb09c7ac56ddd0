import type { Migration } from './migration.ts'

/**
 * `line_hash`: the hash of the import line that the row was written from, so that the same line is recognised without parsing it. Null for
 * rows that were not imported, or that detection has changed since. In no index.
 */
export const lineHash: Migration = {
  name: '0004-line-hash',
  async up(knex) {
    await knex.raw('alter table payments add column line_hash bytea')
  },
}
