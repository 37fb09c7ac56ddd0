import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { MigrationLock } from '../../src/postgres/migrations/lock-mode.ts'
import type { IndexChange, Migration, TransactionMigration } from '../../src/postgres/migrations/migration.ts'
import { judgeMigrations } from '../../tools/migrations/check-migrations.ts'
import { createTestDatabase, type TestDatabase } from '../support/data/database.ts'

let db: TestDatabase

beforeAll(async () => {
  db = await createTestDatabase()
})

afterAll(() => db?.drop())

async function empty(): Promise<void> {
  await db.knex.raw('drop schema public cascade')
  await db.knex.raw('create schema public')
}

/** A step of statements. */
function step(name: string, statements: readonly string[], more: Partial<TransactionMigration> = {}): Migration {
  return {
    ...more,
    name,
    async up(knex) {
      for (const statement of statements) await knex.raw(statement)
    },
  }
}

const tables = step('0001-tables', [
  'create table rows (account_id integer, n integer, maybe text, "full" text, primary key (account_id, n))',
  'create index rows_maybe on rows (maybe)',
  'create table others (n integer primary key)',
])
const strong: MigrationLock = { table: 'rows', mode: 'ACCESS EXCLUSIVE', passes: 0 }
const share: MigrationLock = { table: 'rows', mode: 'SHARE', passes: 1 }
const reading: MigrationLock = { ...strong, passes: 1 }
const contract = { unusedSince: '0001-tables' }

test('steps that keep the rules pass, also with the contract steps at the end', async () => {
  await empty()
  const good = [
    tables,
    step('0002-column', ['alter table rows add column more integer default 3'], { locks: [strong] }),
    step('0003-check', ['alter table rows add constraint positive check (more > 0) not valid'], { locks: [strong] }),
    step('0004-valid', ['alter table rows validate constraint positive'], {
      locks: [{ table: 'rows', mode: 'SHARE UPDATE EXCLUSIVE', passes: 1 }],
    }),
    step('0005-contract', ['alter table rows drop column maybe'], { locks: [strong], contract }),
    { name: '0006-index', indexes: [{ build: 'rows_more', table: 'rows', definition: '(account_id, more)' }] },
    { name: '0007-drop', contract, indexes: [{ drop: 'rows_more', table: 'rows' }] },
    step('0008-table', ['create table news (n bigint generated always as identity primary key)']),
  ]
  expect(await judgeMigrations(db.knex, good)).toEqual([])
})

describe('against the rules', () => {
  beforeAll(async () => {
    await empty()
    expect(await judgeMigrations(db.knex, [tables])).toEqual([])
    await db.knex.raw(`update rows set "full" = 'a'`)
  })

  test.each<[string, readonly string[], Partial<TransactionMigration>, readonly string[]]>([
    [
      'names no lock',
      ['alter table rows add column more text'],
      {},
      ['it names the locks [] and takes [rows: ACCESS EXCLUSIVE]'],
    ],
    [
      'names a lock that it does not take',
      ['create table news (n integer)'],
      { locks: [strong] },
      ['it names the locks [rows: ACCESS EXCLUSIVE] and takes []'],
    ],
    [
      'builds an index in its transaction',
      ['create index slow on rows (n)'],
      { locks: [share] },
      [
        'it reads the rows of rows under a lock that stops writes',
        'it builds slow on rows in a transaction: use indexes',
      ],
    ],
    [
      'rewrites a table',
      ['alter table rows add column at timestamptz default clock_timestamp()'],
      { locks: [reading] },
      ['it reads the rows of rows under a lock that stops reads and writes', 'it rewrites rows'],
    ],
    [
      'checks all rows at once',
      ['alter table rows add constraint positive check (n > 0)'],
      { locks: [reading] },
      [
        'it reads the rows of rows under a lock that stops reads and writes',
        'it adds positive to rows without NOT VALID',
      ],
    ],
    [
      'locks two tables',
      ['alter table rows add column more text', 'alter table others add column more text'],
      { locks: [strong, { ...strong, table: 'others' }] },
      ['it locks others and rows: one table a step, or two waits add up'],
    ],
    [
      'writes rows',
      ['update others set n = 2'],
      { locks: [{ table: 'others', mode: 'ROW EXCLUSIVE', passes: 1 }] },
      ['it writes rows of others: let the service or a command do that in batches'],
    ],
    [
      'drops a column',
      ['alter table rows drop column maybe'],
      { locks: [strong] },
      ['rows.maybe is dropped', 'rows_maybe is dropped'],
    ],
    [
      'renames a column',
      ['alter table rows rename column maybe to perhaps'],
      { locks: [strong] },
      ['rows.maybe is renamed to perhaps'],
    ],
    [
      'changes a type without a rewrite',
      [
        'alter table others add column t varchar(3)',
        'alter table others alter column t type varchar(5)',
        'alter table rows alter column maybe type varchar',
      ],
      { locks: [strong, { ...strong, table: 'others' }] },
      [
        'it locks others and rows: one table a step, or two waits add up',
        'rows.maybe gets the type character varying collate "default"',
      ],
    ],
    [
      'refuses null',
      ['alter table rows alter column "full" set not null'],
      { locks: [reading] },
      ['it reads the rows of rows under a lock that stops reads and writes', 'rows.full refuses null'],
    ],
    [
      'renames a table',
      ['alter table others rename to theirs'],
      { locks: [{ ...strong, table: 'others' }] },
      ['the table others is renamed to theirs'],
    ],
    [
      'drops a table',
      ['drop table others'],
      { locks: [{ ...strong, table: 'others' }] },
      ['the table others is dropped'],
    ],
    ['drops an index', ['drop index rows_maybe'], { locks: [strong] }, ['rows_maybe is dropped']],
    [
      'adds an identity column',
      ['alter table rows add column note bigint generated by default as identity'],
      { locks: [reading] },
      [
        'it reads the rows of rows under a lock that stops reads and writes',
        'it rewrites rows',
        'rows.note becomes an identity column, which a sharded table refuses',
      ],
    ],
    [
      'adds a constraint beside something else',
      ['alter table rows add column more integer, add constraint small check (more < 9) not valid'],
      { locks: [strong] },
      [
        '"alter table rows add column more integer, add constraint small check (more < 9) not valid" adds a constraint beside something else',
      ],
    ],
    [
      'sends two statements in one call',
      ['create table news (n integer); create table olds (n integer)'],
      {},
      ['"create table news (n integer); create table olds (n integer)" is more than one statement a call'],
    ],
    [
      'names a later step as the one that stopped the use',
      ['alter table rows drop column maybe'],
      { locks: [strong], contract: { unusedSince: '0003-later' } },
      ['0003-later is no earlier step'],
    ],
    [
      'fails on rows',
      ['alter table others add column must integer not null'],
      {},
      ['column "must" of relation "others" contains null values'],
    ],
  ])('a step that %s is reported', async (_, statements, more, faults) => {
    const trx = await db.knex.transaction()
    const found = await judgeMigrations(trx, [step('0002-bad', statements, more)])
    await trx.rollback()
    expect(found).toEqual(faults.map((fault) => expect.stringMatching(startOf(fault))))
  })
})

test.each<[string, IndexChange, string]>([
  ['on a table that is not there', { build: 'x', table: 'rosw', definition: '(n)' }, 'relation "rosw" does not exist'],
  ['that is not there, to be dropped', { drop: 'rows_mabye', table: 'rows' }, 'rows has no index rows_mabye'],
  [
    'to be dropped, without contract',
    { drop: 'rows_maybe', table: 'rows' },
    'rows_maybe is dropped: older releases may use it',
  ],
  [
    'unique without the account',
    { build: 'x', unique: true, table: 'rows', definition: '(n)' },
    'x is unique without account_id',
  ],
])('an index %s is reported', async (_, change, fault) => {
  await empty()
  const found = await judgeMigrations(db.knex, [tables, { name: '0002-bad', indexes: [change] }])
  expect(found).toContainEqual(expect.stringContaining(fault))
})

test('a step that relies on a contract step before it is reported', async () => {
  await empty()
  const list = [
    tables,
    step('0002-contract', ['alter table rows drop column maybe'], { locks: [strong], contract }),
    step('0003-again', ['alter table rows add column if not exists maybe integer'], { locks: [strong] }),
  ]
  expect(await judgeMigrations(db.knex, list)).toEqual([
    'with the contract steps at the end the list makes another schema',
  ])
})

/** A fault with its step before it; its end may be left out, and a failed statement stands before the server's words. */
function startOf(fault: string): RegExp {
  return new RegExp(`^0002-bad: (?:.* - )?${fault.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`)}`, 's')
}
