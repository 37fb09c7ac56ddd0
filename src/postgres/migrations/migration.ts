import type { Knex } from 'knex'

/** One step of the schema. Steps run in the order of the list, each once in a database's life, each in a transaction. */
export interface Migration {
  /** Unique and final: the database remembers it. */
  readonly name: string
  /** `knex` is the transaction. One statement a call, which a distributed PostgreSQL needs. */
  up(knex: Knex.Transaction): Promise<void>
}
