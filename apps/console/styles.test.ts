import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'

it('no two pages style one class: their sheets are one', () => {
  const sheets = globSync('*/*.css', { cwd: import.meta.dirname })
  const owners = new Map<string, Set<string>>()
  for (const sheet of sheets) {
    const text = readFileSync(join(import.meta.dirname, sheet), 'utf8')
    for (const [, name = ''] of text.matchAll(/^\.([\w-]+)[^\n]*\{/gm)) {
      owners.set(name, (owners.get(name) ?? new Set()).add(sheet))
    }
  }
  const shared = [...owners]
    .filter(([, found]) => found.size > 1)
    .map(([name, found]) => `${name}: ${[...found].join(' ')}`)
  expect(shared).toEqual([])
})
