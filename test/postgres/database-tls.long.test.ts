import { appendFile, chmod, copyFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { runCancellable } from '../../src/postgres/cancellable.ts'
import { checkDatabase } from '../../src/postgres/check-database.ts'
import type { EmbeddedServer } from '../../src/postgres/embedded/embedded-server.ts'
import { createDatabase } from '../../src/postgres/knex.ts'
import { findFreePort } from '../support/data/free-port.ts'
import { startTestedServer } from '../support/data/tested-server.ts'
import { recordLogs } from '../support/logs.ts'
import { makeTempFolder } from '../support/temp-folder.ts'
import { tlsPaths } from '../support/tls-certificate.ts'

const FILES = join(import.meta.dirname, '../support/tls/database')
const CA = join(FILES, 'ca.pem')
const OTHER_CA = tlsPaths.first.cert

let dataDir: string
let port: number
let server: EmbeddedServer

/** A server with a certificate for localhost, signed by a private authority; users connect by TLS and their password. */
beforeAll(async () => {
  dataDir = await makeTempFolder('database-tls')
  port = await findFreePort()
  const plain = await startTestedServer({ dataDir, settings: { fsync: 'off' } })
  await plain.stop()
  const data = join(dataDir, 'pg', 'data')
  for (const name of ['server.pem', 'server.key', 'ca.pem']) await copyFile(join(FILES, name), join(data, name))
  await chmod(join(data, 'server.key'), 0o600)
  const rules = ['local all all scram-sha-256', 'hostssl postgres all all scram-sha-256', 'hostssl strict all all cert']
  await writeFile(join(data, 'pg_hba.conf'), `${rules.join('\n')}\n`)
  // not among the settings of the start, because a test switches it off
  await appendFile(join(data, 'postgresql.conf'), 'ssl = on\n')
  server = await startTestedServer({
    dataDir,
    settings: {
      fsync: 'off',
      listen_addresses: '127.0.0.1',
      port: String(port),
      ssl_cert_file: 'server.pem',
      ssl_key_file: 'server.key',
      ssl_ca_file: 'ca.pem',
    },
  })
})

afterAll(async () => {
  await server?.stop()
  await rm(dataDir, { recursive: true, force: true })
})

const urlOf = (parameters: string, { host = 'localhost', database = 'postgres' } = {}) =>
  `postgres://waybill:${server.connection().password}@${host}:${port}/${database}${parameters}`

/** How the start of a service on that URL ends, and what it warns of. */
async function check(url: string): Promise<{ fault: string; warnings: string[] }> {
  const warnings: string[] = []
  const logger = { ...recordLogs(), warn: (_: object, message: string) => void warnings.push(message) }
  const pool = createDatabase(url, { poolMax: 1 })
  try {
    await checkDatabase(pool, url, logger)
    return { fault: '', warnings }
  } catch (error) {
    const { message, cause } = error as Error
    return { fault: `${message}: ${(cause as Error | undefined)?.message}`, warnings }
  } finally {
    await pool.destroy()
  }
}

test.each([
  ['verify-full with the private authority', `?sslmode=verify-full&sslrootcert=${CA}`],
  ['require, which is taken as verify-full', `?sslmode=require&sslrootcert=${CA}`],
  ['sslrootcert alone', `?sslrootcert=${CA}`],
  ['no-verify', '?sslmode=no-verify'],
])('connects with %s', async (_, parameters) => {
  expect(await check(urlOf(parameters))).toEqual({ fault: '', warnings: [] })
})

test.each([
  ['another authority', `?sslmode=verify-full&sslrootcert=${OTHER_CA}`, {}, /name the authority.*sslrootcert=FILE/],
  ['the public authorities alone', '?sslmode=require', {}, /name the authority that signed its certificate/],
  [
    'a host name that the certificate lacks',
    `?sslmode=verify-full&sslrootcert=${CA}`,
    { host: '127.0.0.1' },
    /connect by a name that its certificate has/,
  ],
  [
    'a host name that the certificate lacks, and a mode that would not check it in libpq',
    `?sslmode=verify-ca&sslrootcert=${CA}`,
    { host: '127.0.0.1' },
    /connect by a name that its certificate has/,
  ],
  ['no TLS where the server demands it', '', {}, /add sslmode=verify-full.*no encryption/],
  ['a file that is missing', '?sslmode=verify-full&sslrootcert=/nowhere/ca.pem', {}, /ENOENT.*\/nowhere\/ca\.pem/],
  ['a mode that does not exist', '?sslmode=verify_full', {}, /sslmode is "verify_full": use verify-full/],
])('is refused with %s, without the password', async (_, parameters, place, fault) => {
  const found = await check(urlOf(parameters, place))
  expect(found.fault).toMatch(fault)
  expect(found.fault).not.toContain(server.connection().password)
})

test('a client certificate is sent where the server demands one', async () => {
  const admin = createDatabase({ ...server.connection(), port }, { poolMax: 1 })
  await admin.raw('create database strict')
  await admin.destroy()
  const own = `?sslmode=verify-full&sslrootcert=${CA}&sslcert=${FILES}/client.pem&sslkey=${FILES}/client.key`
  expect((await check(urlOf(own, { database: 'strict' }))).fault).toBe('')
  const without = await check(urlOf(`?sslmode=verify-full&sslrootcert=${CA}`, { database: 'strict' }))
  expect(without.fault).toContain('requires a valid client certificate')
})

test('a statement is cancelled over TLS', async () => {
  const pool = createDatabase(urlOf(`?sslmode=verify-full&sslrootcert=${CA}`), { poolMax: 1 })
  const controller = new AbortController()
  const sleeping = runCancellable(pool, pool.raw('select pg_sleep(60)'), controller.signal)
  const watcher = createDatabase({ ...server.connection(), port }, { poolMax: 1 })
  const running = () =>
    watcher.raw(`select from pg_stat_activity where state = 'active' and query like '%pg_sleep(60)'`)
  await vi.waitFor(async () => expect((await running()).rowCount).toBe(1), 5_000)
  controller.abort(new Error('gave up'))
  await expect(sleeping).rejects.toThrow('gave up')
  expect((await running()).rowCount).toBe(0)
  await Promise.all([pool.destroy(), watcher.destroy()])
})

test('a server without TLS is refused, whatever the mode that asks for it', async () => {
  const admin = createDatabase({ ...server.connection(), port }, { poolMax: 1 })
  await admin.raw('alter system set ssl = off')
  await admin.raw('select pg_reload_conf()')
  await vi.waitFor(async () => expect((await admin.raw('show ssl')).rows[0].ssl).toBe('off'), 5_000)
  await admin.destroy()
  for (const mode of ['require', 'prefer', 'verify-full']) {
    expect((await check(urlOf(`?sslmode=${mode}&sslrootcert=${CA}`))).fault).toContain('does not support SSL')
  }
})
