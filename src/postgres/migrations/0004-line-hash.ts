import type { Migration } from './migration.ts'

/**
 * `line_hash`: what the line is known by that an import wrote the row from, so that the same line is known again without being read. Null
 * of a row that came otherwise, or that was seen on chain since. In no index.
 */
export const lineHash: Migration = {
  name: '0004-line-hash',
  async up(knex) {
    await knex.raw('alter table payments add column line_hash bytea')
  },
}
