import { expect, it } from 'vitest'
import { type DatabaseFacts, judgeDatabase } from './check-database.ts'

const plain: DatabaseFacts = {
  version: 180_004,
  versionName: '18.4',
  encoding: 'UTF8',
  database: 'waybill',
  role: 'server',
  isPooled: false,
  isReplica: false,
  isReadOnly: false,
  schema: 'public',
  searchPath: '"$user", public',
  schemasWithTables: 'public',
  findsTables: true,
  statementMs: 0,
  lockMs: 0,
  idleMs: 0,
  transactionMs: 0,
}

it('a database as PostgreSQL creates it is fine, and an empty one as well', () => {
  expect(judgeDatabase(plain)).toEqual({ faults: [], warnings: [] })
  const empty = { ...plain, schemasWithTables: null, findsTables: false }
  expect(judgeDatabase(empty)).toEqual({ faults: [], warnings: [] })
})

it.each<[Partial<DatabaseFacts>, RegExp]>([
  [{ version: 140_012, versionName: '14.12' }, /^the server is PostgreSQL 14\.12; use 15 to 18$/],
  [{ encoding: 'LATIN1' }, /encoding of the database "waybill" is LATIN1.*create database NAME encoding 'UTF8'/],
  [{ encoding: 'SQL_ASCII' }, /is SQL_ASCII/],
  [{ isReplica: true, isReadOnly: true }, /^the server is a replica.*name the primary$/],
  [{ isReadOnly: true }, /alter role "server" set default_transaction_read_only = off/],
  [{ findsTables: false, searchPath: 'apps' }, /tables are in the schema public, .* is apps\. Run: alter role/],
  [{ schemasWithTables: null, findsTables: false, schema: null, searchPath: 'gone' }, /is gone, which names no schema/],
])('%j is refused', (found, fault) => {
  expect(judgeDatabase({ ...plain, ...found }).faults).toEqual([expect.stringMatching(fault)])
})

it.each<[Partial<DatabaseFacts>, RegExp]>([
  [{ version: 190_000, versionName: '19.0' }, /PostgreSQL 19\.0; Waybill was tried on 15 to 18/],
  [{ isPooled: true }, /statement_timeout is 0 ms .* without end\. Run: .* statement_timeout = '60s'/],
  [{ isPooled: true, statementMs: 1_000 }, /statement_timeout is 1000 ms .* DATABASE_TIMEOUT/],
  [{ lockMs: 100 }, /lock_timeout is 100 ms/],
  [{ idleMs: 5_000 }, /idle_in_transaction_session_timeout is 5000 ms/],
  [{ transactionMs: 600_000 }, /transaction_timeout is 600000 ms/],
])('%j gets a warning', (found, warning) => {
  const { faults, warnings } = judgeDatabase({ ...plain, ...found })
  expect(warnings).toEqual([expect.stringMatching(warning)])
  expect(faults).toEqual([])
})

it.each<Partial<DatabaseFacts>>([
  { isPooled: true, statementMs: 60_000 },
  { statementMs: 1_000 },
  { lockMs: 5_000, idleMs: 60_000 },
  { transactionMs: null },
])('%j gets none', (found) => {
  expect(judgeDatabase({ ...plain, ...found })).toEqual({ faults: [], warnings: [] })
})
