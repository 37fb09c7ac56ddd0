/** Two processes of the service on one database, and the faults by which they and the database die, freeze and come back. */
import { realpathSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Knex } from 'knex'
import { issueApiKey } from '../../../src/auth/manage-keys.ts'
import { createApiKeyRepository } from '../../../src/auth/sql/api-key-repository.ts'
import type { ServerBinaries } from '../../../src/postgres/embedded/embedded-files.ts'
import { type EmbeddedServer, startEmbeddedServer } from '../../../src/postgres/embedded/embedded-server.ts'
import { createDatabase } from '../../../src/postgres/knex.ts'
import { migrate } from '../../../src/postgres/migrations/migrate.ts'
import { startWaybill, type WaybillProcess } from '../../support/process.ts'
import { ACCOUNTS, type AccountName } from './invoices.ts'
import type { Plan } from './seeded-plan.ts'

/** The database, which outlives its kills. */
export interface SoakDatabase {
  readonly knex: Knex
  readonly url: string
  readonly keys: Readonly<Record<AccountName, string>>
  /** Kills the postmaster, waits, and starts another on the same files. */
  kill(downMs: number): Promise<void>
  stop(): Promise<void>
}

const SETTINGS = { max_connections: '60', synchronous_commit: 'on', fsync: 'off' }

/** @param binaries - other programs than those of the installed package */
export async function startSoakDatabase(folder: string, binaries?: ServerBinaries): Promise<SoakDatabase> {
  const start = () => startEmbeddedServer({ dataDir: folder, settings: SETTINGS, binaries })
  let server: EmbeddedServer = await start()
  const connection = server.connection()
  const knex = createDatabase(connection, { poolMax: 2 })
  await migrate(knex)
  const { host, port, user, password, database } = connection
  const path = encodeURIComponent(realpathSync(host))
  const repository = createApiKeyRepository(knex)
  const keys: [string, string][] = []
  for (const account of ACCOUNTS) {
    const scopes = ['payments:read', 'requests:read', 'requests:write', 'routes:read'] as const
    keys.push([account, (await issueApiKey(repository, { account, scopes, now: new Date(), callsPerMinute: 0 })).key])
  }
  return {
    knex,
    url: `postgres://${user}:${encodeURIComponent(password)}@localhost:${port}/${database}?host=${path}`,
    keys: Object.fromEntries(keys) as Record<AccountName, string>,
    async kill(downMs) {
      process.kill(server.pid, 'SIGKILL')
      await server.exited
      await sleep(downMs)
      server = await start()
    },
    async stop() {
      await knex.destroy()
      await server.stop()
    },
  }
}

/** One process of the service, started again whenever it ends. */
export interface SoakService {
  readonly name: string
  /** Undefined while it does not listen. */
  url(): string | undefined
  kill(downMs: number): Promise<void>
  /** Stops the process without ending it, and lets it go on. */
  freeze(forMs: number): Promise<void>
  stop(): Promise<void>
}

interface ServiceOptions {
  readonly name: string
  readonly folder: string
  readonly environment: Readonly<Record<string, string>>
}

export function startSoakService({ name, folder, environment }: ServiceOptions): SoakService {
  let running: WaybillProcess | undefined
  let url: string | undefined
  const stopping = new AbortController()
  let restartAfterMs = 0
  let starts = 0

  async function live(): Promise<void> {
    while (!stopping.signal.aborted) {
      const process = startWaybill(['serve'], environment)
      running = process
      starts++
      process.says(/Waybill on (http:\S+):/).then(
        ([, found]) => {
          if (running === process) url = found
        },
        () => {},
      )
      const { stdout, stderr } = await process.ended
      url = undefined
      await writeFile(join(folder, `${name}-${starts}.log`), `${stdout}\n${stderr}`)
      if (!stopping.signal.aborted) await sleep(restartAfterMs || 500)
      restartAfterMs = 0
    }
  }
  const ended = live()

  return {
    name,
    url: () => url,
    async kill(downMs) {
      restartAfterMs = downMs
      const killed = running
      killed?.kill('SIGKILL')
      await killed?.ended
    },
    async freeze(forMs) {
      const frozen = running
      frozen?.kill('SIGSTOP')
      await sleep(forMs)
      frozen?.kill('SIGCONT')
    },
    async stop() {
      stopping.abort()
      running?.kill('SIGTERM')
      await ended
    },
  }
}

export interface Kills {
  service: number
  database: number
  frozen: number
}

interface ServiceFaults {
  readonly services: readonly SoakService[]
  readonly database: SoakDatabase
  readonly plan: Plan
  readonly kills: Kills
  /** Time between two faults, at least and at most, in ms. */
  readonly every: readonly [number, number]
}

/** Kills and freezes services and the database by the plan until the signal fires. */
export async function runServiceFaults(faults: ServiceFaults, signal: AbortSignal): Promise<void> {
  const { services, database, plan, kills, every } = faults
  while (!signal.aborted) {
    await sleep(plan.between(...every), undefined, { signal }).catch(() => {})
    const kind = plan.weighted({ kill: 3, freeze: 2, database: 2, both: 1 })
    const service = plan.pick(services)
    const lastsMs = plan.between(300, 6_000)
    if (signal.aborted) return
    if (kind === 'database') {
      kills.database++
      await database.kill(Math.min(lastsMs, 1_500))
    } else if (kind === 'freeze') {
      kills.frozen++
      await service.freeze(lastsMs)
    } else {
      const killed = kind === 'both' ? services : [service]
      kills.service += killed.length
      await Promise.all(killed.map((each) => each.kill(Math.min(lastsMs, 2_000))))
    }
  }
}

type Json = Record<string, unknown>

/** Calls one of the services. @throws Error when it does not answer, or not with 200 */
export async function callService(
  service: SoakService,
  key: string,
  { path, body }: { readonly path: string; readonly body?: object },
): Promise<Json> {
  const url = service.url()
  if (url === undefined) throw new Error(`${service.name} does not listen`)
  const response = await fetch(`${url}${path}`, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { 'x-api-key': key, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
    signal: AbortSignal.timeout(5_000),
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const answer = (await response.json()) as Json
  if (response.status !== 200) throw new ServiceError(path, response.status, JSON.stringify(answer))
  return answer
}

export class ServiceError extends Error {
  override readonly name = 'ServiceError'
  readonly status: number

  constructor(path: string, status: number, answer: string) {
    super(`${path}: ${status} ${answer}`)
    this.status = status
  }
}
