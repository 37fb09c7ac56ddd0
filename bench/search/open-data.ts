import { existsSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type { Knex } from 'knex'
import type { Connection } from '../../src/postgres/embedded/embedded-connection.ts'
import { openEmbeddedServer, startEmbeddedServer } from '../../src/postgres/embedded/embedded-server.ts'
import { createDatabase } from '../../src/postgres/knex.ts'
import { migrate } from '../../src/postgres/migrate.ts'
import { dumpSchema } from '../../tools/dump-schema.ts'
import { GENERATOR_VERSION, type GeneratorTerms } from './generate-payments.ts'
import { loadPayments } from './load-payments.ts'

/** A loaded database. */
export interface LoadedDatabase {
  readonly connection: Connection
  readonly knex: Knex
}

const STAMP = 'search-bench.json'
/** Not all that differs is a step of its own while steps are still being written. */
const SCHEMA = resolve(import.meta.dirname, '../../src/postgres/schema.sql')

/** For two cores and 16 GB or more: what an operator of such a machine would set. */
const SERVE_SETTINGS = {
  shared_buffers: '4GB',
  effective_cache_size: '12GB',
  maintenance_work_mem: '1GB',
  max_wal_size: '8GB',
  checkpoint_timeout: '30min',
  random_page_cost: '1.1',
}

/** While it is filled nothing need outlive a power cut. */
const LOAD_SETTINGS = {
  ...SERVE_SETTINGS,
  wal_level: 'minimal',
  max_wal_senders: '0',
  fsync: 'off',
  full_page_writes: 'off',
  synchronous_commit: 'off',
  autovacuum: 'off',
}

/** Where the payments are kept, and what is said while they are made. */
export interface OpenOptions extends GeneratorTerms {
  readonly dataDir: string
  /** Pool connections of the returned database. */
  readonly poolMax: number
  readonly say: (text: string) => void
}

/**
 * Opens the database of a folder, made and filled before if the folder is new; what an older program made is migrated.
 *
 * @param stack - closes what was opened
 * @throws Error when the folder holds other payments, or some that were not loaded to the end
 */
export async function openData(options: OpenOptions, stack: AsyncDisposableStack): Promise<LoadedDatabase> {
  const { dataDir, rows, seed, poolMax, say } = options
  const stampPath = join(dataDir, STAMP)
  const stamp = JSON.stringify({ rows, seed, generator: GENERATOR_VERSION })
  if (!existsSync(dataDir)) {
    await fill(options)
    await writeFile(stampPath, stamp)
  }
  const found = existsSync(stampPath) ? await readFile(stampPath, 'utf8') : 'nothing that was loaded to the end'
  if (found !== stamp) throw new Error(`${dataDir} holds ${found}, not ${stamp}: remove it or name another folder`)
  const server = await openEmbeddedServer({ dataDir, settings: SERVE_SETTINGS })
  stack.defer(() => server.release())
  const knex = stack.adopt(createDatabase(server.connection(), { poolMax }), (pool) => pool.destroy())
  const ran = await migrate(knex)
  if (ran.length > 0) {
    say(`migrated: ${ran.join(', ')}`)
    await knex.raw('vacuum (analyze)')
  }
  if ((await dumpSchema(knex)) !== (await readFile(SCHEMA, 'utf8'))) {
    throw new Error(
      `${dataDir} has a schema that differs from src/postgres/schema.sql: remove it or name another folder`,
    )
  }
  return { connection: server.connection(), knex }
}

async function fill({ dataDir, rows, seed, say }: OpenOptions): Promise<void> {
  const server = await startEmbeddedServer({ dataDir, settings: LOAD_SETTINGS })
  const knex = createDatabase(server.connection())
  try {
    await migrate(knex)
    await loadPayments({ knex, rows, seed, say })
  } finally {
    await knex.destroy()
    await server.stop()
  }
}
