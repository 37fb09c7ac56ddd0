import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { startEmbeddedServer } from '../../src/postgres/embedded/embedded-server.ts'
import { createDatabase } from '../../src/postgres/knex.ts'
import { migrate } from '../../src/postgres/migrations/migrate.ts'
import { createTestDatabase, urlOfDatabase } from '../support/data/database.ts'
import { testedServer } from '../support/data/tested-server.ts'
import { runCommand } from '../support/run-command.ts'
import { makeTempFolder } from '../support/temp-folder.ts'

const ACCOUNTS = 20

it.skipIf(!testedServer.isCitus)(
  'the embedded database moves into a sharded one, which is then not backed up',
  async () => {
    const dataDir = await makeTempFolder('to-citus')
    const file = join(dataDir, 'backup')
    const server = await startEmbeddedServer({ dataDir, settings: { fsync: 'off' } })
    const knex = createDatabase(server.connection())
    await migrate(knex)
    const accounts = Array.from({ length: ACCOUNTS }, (_, n) => ({ account_id: n + 1, last_change: n }))
    await knex('account_changes').insert(accounts)
    await knex.destroy()
    const sharded = await createTestDatabase()
    try {
      const taken = await runCommand({ DATA_DIR: dataDir }, ['backup', file])
      expect(taken.stdout).toMatch(new RegExp(`^account_changes\t${ACCOUNTS}\t`, 'm'))
      const url = { DATABASE_URL: urlOfDatabase(sharded) }
      expect(await runCommand(url, ['restore', file])).toMatchObject({ code: 0, stdout: taken.stdout })
      const refused = await runCommand(url, ['backup', join(dataDir, 'again')])
      expect(refused.stderr).toContain('the tables are sharded over several servers, which have no moment in common')
    } finally {
      await sharded.drop()
      await server.stop()
      await rm(dataDir, { recursive: true })
    }
  },
)
