/** The building of an index is interrupted in every way, on a table that takes seconds, and continues. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { realpathSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { Knex } from 'knex'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { type EmbeddedServer, startEmbeddedServer } from '../../src/postgres/embedded/embedded-server.ts'
import { createDatabase } from '../../src/postgres/knex.ts'
import { makeTempFolder } from '../support/temp-folder.ts'

const ROOT = resolve(import.meta.dirname, '../..')
const CHILD = fileURLToPath(new URL('./migrate-child.ts', import.meta.url))
const ROWS = 2_000_000
const PATIENCE = { timeout: 120_000, interval: 50 }

let folder: string
let server: EmbeddedServer
let knex: Knex

beforeAll(async () => {
  folder = await makeTempFolder('interrupted')
  await start()
  await knex.raw('create table large (n integer primary key, hash text not null)')
  await knex.raw('insert into large select n, md5(n::text) from generate_series(1, ?) n', [ROWS])
})
afterAll(async () => {
  await knex?.destroy()
  await server?.stop()
  await rm(folder, { recursive: true, force: true })
})
beforeEach(async () => {
  await knex.raw('drop index if exists large_hash')
  await knex.raw('drop table if exists schema_steps')
})

async function start(): Promise<void> {
  server = await startEmbeddedServer({ dataDir: join(folder, 'data') })
  knex = createDatabase(server.connection())
}

interface Child {
  readonly process: ChildProcess
  readonly printed: { readonly failed?: string; readonly ran?: readonly string[] }[]
  readonly ended: Promise<unknown>
}

function startChild(): Child {
  const { host, port, user, password, database } = server.connection()
  const url = `postgres://${user}:${encodeURIComponent(password)}@localhost:${port}/${database}?host=${encodeURIComponent(realpathSync(host))}`
  const process = spawn(`${ROOT}/tools/with-node`, ['node', CHILD], {
    env: { ...globalThis.process.env, DATABASE_URL: url },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const printed: Child['printed'] = []
  createInterface({ input: process.stdout }).on('line', (line) => printed.push(JSON.parse(line)))
  return { process, printed, ended: once(process, 'close') }
}

async function untilBuilding(): Promise<void> {
  const building = () => knex('pg_stat_progress_create_index').where('phase', 'like', 'building index%')
  await expect.poll(building, PATIENCE).toHaveLength(1)
}

async function indexOf(): Promise<{ readonly oid: number; readonly valid: boolean } | undefined> {
  const { rows } = await knex.raw(
    `select indexrelid::int as oid, indisvalid as valid from pg_index where indexrelid = to_regclass('large_hash')`,
  )
  return rows[0]
}

/** Runs a child to its end. */
async function finish(child = startChild()): Promise<Child> {
  await child.ended
  expect(child.printed.at(-1)).toEqual({ ran: ['0001-index'] })
  expect(await indexOf()).toEqual({ oid: expect.any(Number), valid: true })
  return child
}

it('a process that is killed leaves a build that the next one waits for', async () => {
  const killed = startChild()
  await untilBuilding()
  killed.process.kill('SIGKILL')
  await killed.ended
  const begun = await indexOf()
  expect(begun?.valid).toBe(false)
  await finish()
  expect((await indexOf())?.oid).toBe(begun?.oid)
})

it('a backend that is ended is begun again by the same process', async () => {
  const child = startChild()
  await untilBuilding()
  await knex.raw(`select pg_terminate_backend(pid) from pg_stat_progress_create_index`)
  const { printed } = await finish(child)
  expect(printed.filter(({ failed }) => failed !== undefined)).toHaveLength(1)
})

it('a build goes on in the same process when the server restarts', async () => {
  const child = startChild()
  await untilBuilding()
  await knex.destroy()
  await server.stop()
  await start()
  const { printed } = await finish(child)
  expect(printed.filter(({ failed }) => failed !== undefined).length).toBeGreaterThan(0)
})

it('a process that is killed with its server is continued by the next', async () => {
  const child = startChild()
  await untilBuilding()
  child.process.kill('SIGKILL')
  await child.ended
  await knex.destroy()
  await server.stop()
  await start()
  expect((await indexOf())?.valid).toBe(false)
  await finish()
})
