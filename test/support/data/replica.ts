import { cp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Knex } from 'knex'
import { expect, vi } from 'vitest'
import type { Connection } from '../../../src/postgres/embedded/embedded-connection.ts'
import type { EmbeddedServer } from '../../../src/postgres/embedded/embedded-server.ts'
import { createDatabase } from '../../../src/postgres/knex.ts'
import { migrate } from '../../../src/postgres/migrations/migrate.ts'
import { PATIENCE } from '../patience.ts'
import { makeTempFolder } from '../temp-folder.ts'
import { startTestedServer } from './tested-server.ts'

/** A primary with a migrated database, and a real server that follows it by streaming. */
export interface ReplicatedDatabase {
  readonly primary: Knex
  readonly primaryConnection: Connection
  readonly replicaConnection: Connection
  /** A pool on the replica, to inspect it. */
  readonly replica: () => Knex
  /** Holds the replica in its present state. */
  pauseReplay(): Promise<void>
  resumeReplay(): Promise<void>
  /** Ends the replica at once, as a crash does. */
  killReplica(): Promise<void>
  startReplica(): Promise<void>
  /** Stops its processes. Call what it returns to continue them. */
  freezeReplica(): Promise<() => void>
  stop(): Promise<void>
}

const QUICK = { fsync: 'off', full_page_writes: 'off', autovacuum: 'off', max_connections: '40' }

export async function startReplicatedDatabase(): Promise<ReplicatedDatabase> {
  const [primaryFolder, replicaFolder] = await Promise.all([makeTempFolder('primary'), makeTempFolder('replica')])
  let primaryServer = await startTestedServer({ dataDir: primaryFolder, settings: QUICK })
  const migrating = createDatabase(primaryServer.connection(), { poolMax: 2 })
  await migrate(migrating)
  await migrating.destroy()
  await primaryServer.stop()
  const dataOf = (folder: string) => join(folder, 'pg', 'data')
  await cp(primaryFolder, replicaFolder, { recursive: true, verbatimSymlinks: true })
  await writeFile(join(dataOf(replicaFolder), 'standby.signal'), '')
  primaryServer = await startTestedServer({ dataDir: primaryFolder, settings: QUICK })

  const { user, password, port } = primaryServer.connection()
  const follow = `host='${dataOf(primaryFolder)}' port=${port} user=${user} password=${password} application_name=replica`
  let replicaServer: EmbeddedServer
  let viewing: Knex | undefined
  async function startReplica(): Promise<void> {
    const settings = { ...QUICK, primary_conninfo: follow, wal_retrieve_retry_interval: '100ms' }
    replicaServer = await startTestedServer({ dataDir: replicaFolder, settings })
  }
  await startReplica()
  const replicaConnection = () => replicaServer.connection()
  const primary = createDatabase(primaryServer.connection())
  const pool = () => (viewing ??= createDatabase(replicaConnection(), { poolMax: 1 }))

  return {
    primary,
    primaryConnection: primaryServer.connection(),
    replicaConnection: replicaConnection(),
    replica: pool,
    async pauseReplay() {
      await pool().raw('select pg_wal_replay_pause()')
      await vi.waitFor(async () => {
        const { rows } = await pool().raw('select pg_get_wal_replay_pause_state() as state')
        expect(rows[0].state).toBe('paused')
      }, PATIENCE)
    },
    async resumeReplay() {
      await pool().raw('select pg_wal_replay_resume()')
    },
    async killReplica() {
      await viewing?.destroy()
      viewing = undefined
      process.kill(replicaServer.pid, 'SIGQUIT')
      await replicaServer.exited
    },
    startReplica,
    async freezeReplica() {
      const { rows } = await pool().raw(`select pid from pg_stat_activity where backend_type = 'client backend'`)
      const pids = [replicaServer.pid, ...rows.map(({ pid }: { pid: number }) => pid)]
      const signalAll = (signal: NodeJS.Signals) => {
        for (const pid of pids) process.kill(pid, signal)
      }
      signalAll('SIGSTOP')
      return () => signalAll('SIGCONT')
    },
    async stop() {
      await viewing?.destroy()
      await primary.destroy()
      await replicaServer.stop()
      await primaryServer.stop()
      await Promise.all([primaryFolder, replicaFolder].map((folder) => rm(folder, { recursive: true, force: true })))
    },
  }
}
