import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, rm, stat, symlink, truncate, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { Readable } from 'node:stream'
import { gunzipSync, gzipSync } from 'node:zlib'
import type { Knex } from 'knex'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createApiKeyRepository } from '../../src/auth/sql/api-key-repository.ts'
import { importLines } from '../../src/imports/import-lines.ts'
import { importPayments } from '../../src/imports/import-payments.ts'
import { getOrCreateSecret } from '../../src/store/settings-repository.ts'
import { createTestDatabase, type TestDatabase, urlOfDatabase } from '../support/data/database.ts'
import { canonical, makeRequest, storeRequest } from '../support/detection.ts'
import { runCommand } from '../support/run-command.ts'
import { makeTempFolder } from '../support/temp-folder.ts'

let database: TestDatabase
let folder: string
let file: string
let written: string

beforeAll(async () => {
  ;[database, folder] = await Promise.all([createTestDatabase(), makeTempFolder('backup')])
  await seed(database.knex)
  file = join(folder, 'good.backup')
  const outcome = await backup(file)
  expect(outcome).toMatchObject({ code: 0 })
  written = outcome.stdout
  await symlink(file, join(folder, 'a-link'))
  await mkdir(join(folder, 'a-folder'))
})
afterAll(async () => {
  await Promise.all([database.drop(), rm(folder, { recursive: true })])
})

const backup = (...words: string[]) => runCommand({ DATABASE_URL: urlOfDatabase(database) }, ['backup', ...words])
const restore = (into: TestDatabase, path: string) =>
  runCommand({ DATABASE_URL: urlOfDatabase(into) }, ['restore', path])

const PAYMENTS = 40

/** An account with a request and payments, whose texts are as awkward as COPY may meet. */
async function seed(knex: Knex): Promise<void> {
  const account = await createApiKeyRepository(knex).ensureAccount('shop')
  await createApiKeyRepository(knex).ensureAccount('other')
  const payee = canonical(`0x${'a1'.repeat(20)}`)
  await storeRequest(knex, account, makeRequest({ network: 'BASE', payee }))
  await getOrCreateSecret(knex, 'cursor')
  const actor = 'a\ttab, a\nline, a \\. and a \\N'
  await knex('audit_log').insert({ at: new Date(), actor, action: '', account: 'shop' })
  const lines = Array.from({ length: PAYMENTS }, (_, n) => ({
    id: `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`,
    status: 'CONFIRMED',
    timestamp: '2026-11-01T12:00:00Z',
    updatedAt: '2026-11-01T12:01:00Z',
    amount: `${n}.000001`,
    currency: 'USDC-BASE',
    network: 'BASE',
    reference: `\\. \\N ${n} ✓`,
    paymentReference: '0x00000000000000aa',
  }))
  const text = lines.map((line) => JSON.stringify(line)).join('\n')
  const { bad } = await importLines(Readable.from([Buffer.from(text)]), importPayments(knex, account))
  expect(bad).toBe(0)
}

async function withEmpty<T>(work: (empty: TestDatabase) => Promise<T>): Promise<T> {
  const empty = await createTestDatabase()
  try {
    return await work(empty)
  } finally {
    await empty.drop()
  }
}

describe('waybill backup', () => {
  it('writes a file for its owner alone, and says what each table has', async () => {
    expect((await stat(file)).mode & 0o777).toBe(0o600)
    expect(written).toMatch(new RegExp(`^payments\t${PAYMENTS}\t[0-9a-f]{36}$`, 'm'))
    expect((await readdir(folder)).filter((name) => name.endsWith('.part'))).toEqual([])
  })

  it('refuses to replace a file without --force', async () => {
    const other = join(folder, 'other')
    await writeFile(other, 'mine')
    const refused = await backup(other)
    expect(refused).toMatchObject({ code: 2 })
    expect(refused.stderr).toContain(`FILE is ${other}, which exists: name another file, or replace it with --force`)
    expect(await readFile(other, 'utf8')).toBe('mine')
    expect(await backup(other, '--force')).toMatchObject({ code: 0, stdout: written })
  })

  it('sees one moment while others write', async () => {
    const path = join(folder, 'moment')
    const account = await createApiKeyRepository(database.knex).ensureAccount('busy')
    const stopped = new AbortController()
    const writing = (async () => {
      for (let n = 0; !stopped.signal.aborted; n++) {
        const payee = canonical(`0x${String(n).padStart(40, '0')}`)
        await storeRequest(database.knex, account, makeRequest({ network: 'BASE', payee }))
      }
    })()
    const taken = await backup(path)
    stopped.abort()
    await writing
    const rowsOf = (table: string) => Number(new RegExp(`^${table}\t(\\d+)`, 'm').exec(taken.stdout)?.[1])
    // a request and its topic are written by one transaction
    expect(rowsOf('requests')).toBe(rowsOf('reference_topics'))
    await database.knex('requests').where({ account_id: account.id }).delete()
    await database.knex('reference_topics').where({ account_id: account.id }).delete()
    await database.knex('accounts').where({ id: account.id }).delete()
  })

  it('stops at a signal and leaves no file', async () => {
    const path = join(folder, 'stopped')
    const url = urlOfDatabase(database)
    const stopped = await runCommand({ DATABASE_URL: url }, ['backup', path], AbortSignal.abort(new Error('stopped')))
    expect(stopped.code).toBe(1)
    expect((await readdir(folder)).filter((name) => name.startsWith('stopped'))).toEqual([])
  })
})

describe('waybill restore', () => {
  it('writes the same rows, goes on with the same numbers, and check finds no difference', () =>
    withEmpty(async (empty) => {
      const restored = await restore(empty, file)
      expect(restored).toMatchObject({ code: 0, stdout: written })
      const again = join(folder, 'again')
      const url = { DATABASE_URL: urlOfDatabase(empty) }
      expect(await runCommand(url, ['backup', again])).toMatchObject({ stdout: written })
      expect(await runCommand(url, ['verify'])).toMatchObject({ code: 0, stdout: '' })
      const indexes = (knex: Knex) =>
        knex('pg_indexes').where({ schemaname: 'public' }).orderBy('indexname').pluck('indexdef')
      expect(await indexes(empty.knex)).toEqual(await indexes(database.knex))
      const newest = await createApiKeyRepository(empty.knex).ensureAccount('third')
      expect(newest.id).toBeGreaterThan(Math.max(...(await database.knex('accounts').pluck('id'))))
    }))

  it('refuses a database with rows', async () => {
    const refused = await restore(database, file)
    expect(refused).toMatchObject({ code: 1, stdout: '' })
    expect(refused.stderr).toContain(
      'the database is not empty (its table payments has rows): restore into a new database',
    )
  })

  type Change = (text: string) => string
  const replace =
    (from: string | RegExp, to: string): Change =>
    (text) =>
      text.replace(from, to)
  const damages: [name: string, change: Change, says: string][] = [
    ['another amount', replace('\t7.000001\t', '\t8.000001\t'), 'the table payments has rows with other contents'],
    ['a row less', replace(/^1\t00000000-0000-4000-8000-000000000003\t.*\n/m, ''), 'has 39 rows instead of 40'],
    ['a text for a number', replace('\t7.000001\t', '\tseven\t'), 'a row of the table payments cannot be read'],
    ['no last line', (text) => text.slice(0, text.lastIndexOf('\n', text.length - 2) + 1), 'its last line is missing'],
    ['an end among rows', (text) => text.slice(0, text.indexOf('\t7.000001\t')), 'it ends among the rows of a table'],
    ['something more', (text) => `${text}more\n`, 'something follows its last line'],
    ['another time', replace(/"takenAt":"2/, '"takenAt":"3'), 'its checksum differs'],
    ['a newer format', replace('"format":1', '"format":2'), 'the backup has format 2, and this release reads format 1'],
    [
      'the schema of another release',
      replace(/0001-schema-\w+/, '0001-schema-x'),
      'another release (its schema has 0001-schema-x, unknown here)',
    ],
    [
      'an older schema than the database',
      replace(/"steps":\["[^"]+"\]/, '"steps":[]'),
      'the database has a newer schema than the backup',
    ],
    [
      'another column',
      replace('"amount_in_usd"', '"amount_in_eur"'),
      'the table payments has other columns in the backup than in the database',
    ],
    [
      'another program',
      replace('"waybill":"backup"', '"other":"backup"'),
      'the file is no backup that "waybill backup" has written',
    ],
    ['no text', () => '', 'the file is no backup'],
  ]
  describe('of a changed file', () => {
    let empty: TestDatabase
    beforeAll(async () => {
      empty = await createTestDatabase()
    })
    afterAll(() => empty.drop())

    it.each(damages)('refuses %s', async (_, change, says) => {
      const text = gunzipSync(await readFile(file)).toString()
      const path = join(folder, 'damaged')
      expect(change(text)).not.toBe(text)
      await writeFile(path, gzipSync(change(text)))
      const refused = await restore(empty, path)
      expect(refused).toMatchObject({ code: 1, stdout: '' })
      expect(refused.stderr).toContain(says)
      expect(await empty.knex('payments').first()).toBeUndefined()
    })
  })

  it('refuses a cut file, one with a changed byte, and one of another kind', () =>
    withEmpty(async (empty) => {
      const bytes = await readFile(file)
      const path = join(folder, 'cut')
      await writeFile(path, bytes)
      await truncate(path, bytes.length - 20)
      expect((await restore(empty, path)).stderr).toContain('the file is damaged (unexpected end of file)')
      const changed = Buffer.from(bytes)
      changed.writeUInt8(bytes.readUInt8(bytes.length - 6) ^ 1, bytes.length - 6)
      await writeFile(path, changed)
      expect((await restore(empty, path)).stderr).toContain('the file is damaged (incorrect data check)')
      await writeFile(path, 'select 1')
      expect((await restore(empty, path)).stderr).toContain(`${path} is no backup that "waybill backup" has written`)
      expect(await empty.knex('payments').first()).toBeUndefined()
    }))
})

it.each<[words: string[], says: string]>([
  [['backup'], 'FILE is missing'],
  [['backup', ''], 'FILE is empty: name a file'],
  [['backup', '-'], 'FILE is "-": standard input and output are not used'],
  [['backup', 'a-link'], 'which is a symbolic link: name a file'],
  [['backup', 'a-folder', '--force'], 'which is not a regular file: name a file'],
  [['backup', '/dev/full', '--force'], 'which is not a regular file'],
  [['backup', 'a', 'b'], '"b" is not expected here'],
  [['backup', 'a'], 'which has no database'],
  [['backup', 'a', '--force=yes'], "Option '--force' does not take an argument"],
  [['restore'], 'FILE is missing'],
  [['restore', ''], 'FILE is empty: name a file'],
  [['restore', '-'], 'FILE is "-"'],
  [['restore', 'none'], 'none, which does not exist'],
  [['restore', 'a-folder'], 'which is not a regular file'],
  [['restore', 'a', '--force'], "Unknown option '--force'"],
])('refuses %j', async ([command = '', path, ...rest], says) => {
  const words = path === undefined ? [] : [path.length > 1 && path !== '-' ? resolve(folder, path) : path]
  const refused = await runCommand({ DATA_DIR: folder }, [command, ...words, ...rest])
  expect(refused).toMatchObject({ code: 2, stdout: '' })
  expect(refused.stderr).toContain(says)
  expect(existsSync(join(folder, 'pg'))).toBe(false)
})
