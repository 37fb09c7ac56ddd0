import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { root } from './run-command.ts'

const PAGE = 'docs/internals/rules-and-tests.md'

/** Rows of three cells whose second is a path. */
function readRows(text: string) {
  return text.split('\n').flatMap((line) => {
    const [, rule, path, test] = /^\| (.+) \| `([^`]+\.ts)` \| (.+) \|$/.exec(line) ?? []
    return rule === undefined || path === undefined || test === undefined ? [] : [{ rule, path, test }]
  })
}

/** Names of tests in a file: string literals, and the keys of tables of cases. */
const namesIn = (source: string) => new Set([...source.matchAll(/(['`"])(.*?)\1/g)].map(([, , name]) => name))

it('every rule of the table names a test that exists', () => {
  // What follows says where rules stand, for looking up.
  const [text = ''] = readFileSync(join(root, PAGE), 'utf8').split('## Where a rule stands')
  const rows = readRows(text)
  const tableLines = text
    .split('\n')
    .filter((line) => line.startsWith('| ') && !/^\| (?:rule|quirk of the node) \|/.test(line))
  expect(rows.length).toBeGreaterThan(100)
  expect(rows).toHaveLength(tableLines.length)
  const missing = rows.filter(({ path, test }) => {
    const file = join(root, path)
    return !existsSync(file) || !namesIn(readFileSync(file, 'utf8')).has(test)
  })
  expect(missing).toEqual([])
  expect(new Set(rows.map(({ rule }) => rule)).size).toBe(rows.length)
})
