/** Writes src/postgres/schema.sql: the schema as the migrations make it, so that a change of it shows in a review. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { dumpSchema } from '../src/postgres/dump-schema.ts'
import { startEmbeddedServer } from '../src/postgres/embedded/embedded-server.ts'
import { createDatabase } from '../src/postgres/knex.ts'
import { migrate } from '../src/postgres/migrate.ts'

const dataDir = await mkdtemp(join(tmpdir(), 'waybill-schema-'))
try {
  const server = await startEmbeddedServer({ dataDir, settings: { fsync: 'off' } })
  const knex = createDatabase(server.connection())
  try {
    await migrate(knex)
    await writeFile(new URL('../src/postgres/schema.sql', import.meta.url), await dumpSchema(knex))
  } finally {
    await knex.destroy()
    await server.stop()
  }
} finally {
  await rm(dataDir, { recursive: true, force: true })
}
