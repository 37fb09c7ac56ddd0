import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { SHARDED_TABLES } from './table-kinds.ts'

const schema = readFileSync(join(import.meta.dirname, '../schema.sql'), 'utf8')
const tables = new Map(
  [...schema.matchAll(/^create (?:unlogged )?table (\w+) \(\n([\s\S]*?)\n\)/gm)].map(([, name = '', body = '']) => [
    name,
    body,
  ]),
)
const architecture = readFileSync(join(import.meta.dirname, '../../../ARCHITECTURE.md'), 'utf8')

/** The tables in a row of ARCHITECTURE.md. */
const namedIn = (kind: string) =>
  [...(new RegExp(`^\\| ${kind} \\|(.*)$`, 'm').exec(architecture)?.[1] ?? '').matchAll(/`(\w+)`/g)].map(
    ([, name]) => name,
  )

it('ARCHITECTURE.md names every table of the schema once, and those of accounts are sharded', () => {
  const ofAccounts = namedIn('sharded by account')
  const all = [...ofAccounts, ...namedIn('directories'), ...namedIn('local')]
  expect(new Set(all)).toEqual(new Set([...tables.keys(), 'schema_steps']))
  expect(all).toHaveLength(tables.size + 1)
  const sharded = SHARDED_TABLES.filter(({ column }) => column === 'account_id').map(({ name }) => name)
  expect(new Set(sharded)).toEqual(new Set(ofAccounts))
})

describe.each(SHARDED_TABLES)('$name can be sharded by $column', ({ name, column }) => {
  it('the column is an integer or bytes and never null', () => {
    expect(tables.get(name)).toMatch(
      new RegExp(`^  ${column} ${column === 'topic' ? 'bytea' : 'integer'} not null,$`, 'm'),
    )
  })

  it('all keys begin with it, and no foreign key leaves the table', () => {
    const keys = [...(tables.get(name) ?? '').matchAll(/(?:primary key|unique) \((\w+)/g)].map(([, first]) => first)
    const unique = [...schema.matchAll(new RegExp(`^create unique index \\w+ on ${name} \\((\\w+)`, 'gm'))]
    expect(new Set([...keys, ...unique.map(([, first]) => first)])).toEqual(new Set([column]))
    expect(tables.get(name)).not.toMatch(/foreign key|references/)
  })
})
