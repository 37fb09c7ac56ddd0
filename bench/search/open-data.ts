import { existsSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Knex } from 'knex'
import type { Connection } from '../../src/postgres/embedded/embedded-connection.ts'
import { openEmbeddedServer, startEmbeddedServer } from '../../src/postgres/embedded/embedded-server.ts'
import { createDatabase } from '../../src/postgres/knex.ts'
import { migrate } from '../../src/postgres/migrations/migrate.ts'
import { GENERATOR_VERSION, type GeneratorTerms } from './generate-payments.ts'
import { loadPayments } from './load-payments.ts'

/** A loaded database. */
export interface LoadedDatabase {
  readonly connection: Connection
  readonly knex: Knex
}

const STAMP = 'search-bench.json'

/** What an operator would set on a machine with two cores and 16 GB or more. */
const SERVE_SETTINGS = {
  shared_buffers: '4GB',
  effective_cache_size: '12GB',
  maintenance_work_mem: '1GB',
  max_wal_size: '8GB',
  checkpoint_timeout: '30min',
  random_page_cost: '1.1',
}

/** While the database is filled it need not survive a power cut. */
const LOAD_SETTINGS = {
  ...SERVE_SETTINGS,
  wal_level: 'minimal',
  max_wal_senders: '0',
  fsync: 'off',
  full_page_writes: 'off',
  synchronous_commit: 'off',
  autovacuum: 'off',
}

/** Where the payments are kept, and which. */
export interface OpenOptions extends GeneratorTerms {
  readonly dataDir: string
  /** Pool connections of the returned database. */
  readonly poolMax: number
  readonly say: (text: string) => void
}

/**
 * Opens the database of a folder. A new folder is created and filled first.
 *
 * @param stack - closes the database
 * @throws Error when the folder has other payments, or its load was interrupted
 */
export async function openData(options: OpenOptions, stack: AsyncDisposableStack): Promise<LoadedDatabase> {
  const { dataDir, rows, seed, poolMax, say } = options
  const stampPath = join(dataDir, STAMP)
  const stamp = JSON.stringify({ rows, seed, generator: GENERATOR_VERSION })
  if (!existsSync(dataDir)) {
    await fill(options)
    await writeFile(stampPath, stamp)
  }
  const found = existsSync(stampPath) ? await readFile(stampPath, 'utf8') : 'an interrupted load'
  if (found !== stamp) throw new Error(`${dataDir} holds ${found}, not ${stamp}: remove it or name another folder`)
  const server = await openEmbeddedServer({ dataDir, settings: SERVE_SETTINGS })
  stack.defer(() => server.release())
  const knex = stack.adopt(createDatabase(server.connection(), { poolMax }), (pool) => pool.destroy())
  const ran = await migrate(knex)
  if (ran.length > 0) {
    say(`migrated: ${ran.join(', ')}`)
    await knex.raw('vacuum (analyze)')
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
