import type { Knex } from 'knex'

/**
 * One step of the schema. Steps run in the order of the list, each once in a database's life. docs/internals/migrations.md has the rules that
 * new steps keep to.
 */
export type Migration = TransactionMigration | IndexMigration

interface CommonMigration {
  /** Unique and final: the database remembers it. */
  readonly name: string
  /**
   * Present when the step takes away what older releases use. Such a step runs on `waybill migrate --contract` and in new databases only;
   * from then on processes that do not know the step named here refuse to start.
   */
  readonly contract?: {
    /** An earlier step: it came with the release that stopped to use what this step removes, or with a later one. */
    readonly unusedSince: string
  }
}

/** A step in one transaction, which waits for locks for a second at most and is tried again otherwise. */
export interface TransactionMigration extends CommonMigration {
  /** `knex` is the transaction. One statement a call, which a distributed PostgreSQL needs. */
  up(knex: Knex.Transaction): Promise<void>
}

/** A step that builds or drops indexes while the service reads and writes. No transaction; continued after an interruption. */
export interface IndexMigration extends CommonMigration {
  readonly indexes: readonly IndexChange[]
}

export type IndexChange = IndexBuild | { readonly drop: string; readonly table: string }

export interface IndexBuild {
  /** The name of the index. */
  readonly build: string
  readonly table: string
  readonly unique?: boolean
  /** What follows the table's name: `(account_id, id) include (status) where final`. */
  readonly definition: string
}

export function buildsIndexes(migration: Migration): migration is IndexMigration {
  return 'indexes' in migration
}

/** The statement that changes an index without stopping writes. */
export function statementOf(change: IndexChange): string {
  if ('drop' in change) return `drop index concurrently if exists ${change.drop}`
  const { build, table, unique, definition } = change
  return `create ${unique === true ? 'unique ' : ''}index concurrently ${build} on ${table} ${definition}`
}
