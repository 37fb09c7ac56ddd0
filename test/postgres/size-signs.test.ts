import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../support/data/database.ts'

let database: TestDatabase

beforeAll(async () => {
  database = await createTestDatabase()
})

afterAll(() => database?.drop())

const page = await readFile(join(import.meta.dirname, '../../docs/guides/plan-size.md'), 'utf8')
const queries = [...page.matchAll(/```sql\n(?<sql>.*?)```/gs)].map(({ groups }) => groups?.sql ?? '')

test('each query of the guide to sizes runs', async () => {
  expect(queries).toHaveLength(5)
  const answers = await Promise.all(queries.map((sql) => database.knex.raw<{ rows: object[] }>(sql)))
  const [indexes, hits] = answers.map(({ rows }) => rows)
  expect(indexes).toEqual([expect.objectContaining({ shared_buffers: expect.stringMatching(/B$/) })])
  expect(Object.keys(hits?.[0] ?? {})).toContain('hit_percent')
})
