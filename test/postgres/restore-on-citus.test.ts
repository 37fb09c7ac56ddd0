import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type EmbeddedServer, startEmbeddedServer } from '../../src/postgres/embedded/embedded-server.ts'
import { createDatabase } from '../../src/postgres/knex.ts'
import { migrate } from '../../src/postgres/migrations/migrate.ts'
import { readCluster } from '../../src/postgres/sharding/read-cluster.ts'
import { SHARDED_TABLES } from '../../src/postgres/sharding/table-kinds.ts'
import { createTestDatabase, urlOfDatabase } from '../support/data/database.ts'
import { testedServer } from '../support/data/tested-server.ts'
import { runCommand } from '../support/run-command.ts'
import { makeTempFolder } from '../support/temp-folder.ts'

const ACCOUNTS = 20

describe.skipIf(!testedServer.isCitus)('the embedded database moves', () => {
  let dataDir: string
  let server: EmbeddedServer
  let file: string
  let sums: string
  beforeAll(async () => {
    dataDir = await makeTempFolder('to-citus')
    file = join(dataDir, 'backup')
    server = await startEmbeddedServer({ dataDir, settings: { fsync: 'off' } })
    const knex = createDatabase(server.connection())
    await migrate(knex)
    const accounts = Array.from({ length: ACCOUNTS }, (_, n) => ({ account_id: n + 1, last_change: n }))
    await knex('account_changes').insert(accounts)
    await knex.destroy()
    sums = (await runCommand({ DATA_DIR: dataDir }, ['backup', file])).stdout
    expect(sums).toMatch(new RegExp(`^account_changes\t${ACCOUNTS}\t`, 'm'))
  })
  afterAll(async () => {
    await server.stop()
    await rm(dataDir, { recursive: true })
  })

  it('into a sharded one, which is then not backed up', async () => {
    const sharded = await createTestDatabase()
    try {
      const url = { DATABASE_URL: urlOfDatabase(sharded) }
      expect(await runCommand(url, ['restore', file])).toMatchObject({ code: 0, stdout: sums })
      const refused = await runCommand(url, ['backup', join(dataDir, 'again')])
      expect(refused.stderr).toContain('the tables are sharded over several servers, which have no moment in common')
    } finally {
      await sharded.drop()
    }
  })

  it('into one that is sharded afterwards', async () => {
    const plain = await createTestDatabase({}, { isSharded: false })
    try {
      const url = { DATABASE_URL: urlOfDatabase(plain) }
      expect(await runCommand(url, ['restore', file])).toMatchObject({ code: 0, stdout: sums })
      expect(await runCommand(url, ['distribute', '--yes'])).toMatchObject({ code: 0 })
      expect((await readCluster(plain.knex))?.distributed.size).toBe(SHARDED_TABLES.length)
      expect(await plain.knex('account_changes')).toHaveLength(ACCOUNTS)
    } finally {
      await plain.drop()
    }
  })
})
