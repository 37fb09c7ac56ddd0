import { expect, it } from 'vitest'
import { checkModules, findFaults, readLayers } from './check-modules.ts'

it('finds nothing in the project', async () => {
  expect(await checkModules()).toEqual({ outcome: 'ok', output: '' })
})

const ANY = 'export const any = 1\n'

it.each<[string, Record<string, string>, RegExp | undefined]>([
  ['a module below', { 'src/search/a.ts': `import { b } from '../domain/b.ts'\n`, 'src/domain/b.ts': ANY }, undefined],
  [
    'a module beside',
    { 'src/search/a.ts': `import { b } from '../requests/b.ts'\n` },
    /search does not import requests/,
  ],
  ['a module beside, lazily', { 'src/search/a.ts': `const b = await import('../requests/b.ts')\n` }, /does not import/],
  [
    'a module beside, exported again',
    { 'src/search/a.ts': `export { b } from '../requests/b.ts'\n` },
    /does not import/,
  ],
  ['a type of the middle in api', { 'src/api/a.ts': `import type { B } from '../search/b.ts'\n` }, undefined],
  ['types by name', { 'src/api/a.ts': `import { type B, type C } from '../search/b.ts'\n` }, undefined],
  ['more than a type', { 'src/api/a.ts': `import { type B, c } from '../search/b.ts'\n` }, /only types from search/],
  ['generated code in api', { 'src/api/a.ts': `import { B } from '../../gen/b.ts'\n` }, undefined],
  ['generated code elsewhere', { 'src/search/a.ts': `import { B } from '../../gen/b.ts'\n` }, /does not import gen/],
  ['something outside of src', { 'src/search/a.ts': `import { b } from '../../test/b.ts'\n` }, /nothing from outside/],
  ['anything, in a test', { 'src/search/a.test.ts': `import { b } from '../../test/b.ts'\n` }, undefined],
  ['a module without a rule', { 'src/new/a.ts': `import { b } from '../domain/b.ts'\n` }, /the module new has no rule/],
  ['another app', { 'apps/pay/a.ts': `import { b } from '../console/b.ts'\n` }, /pay does not import apps\/console/],
  ['what the apps share', { 'apps/pay/a.ts': `import { b } from '../shared/b.ts'\n` }, undefined],
  [
    'the service, in an app',
    { 'apps/pay/a.ts': `import { b } from '../../src/domain/b.ts'\n` },
    /does not import domain/,
  ],
  ['the demo, in the service', { 'src/search/a.ts': `import { b } from '../../demo/b.ts'\n` }, /does not import demo/],
  [
    'something outside of a client',
    { 'clients/x/src/a.ts': `import { b } from '../../../src/b.ts'\n` },
    /a client imports/,
  ],
  ['an index', { 'src/search/index.ts': ANY }, /no index.ts/],
])('%s', (_, sources, fault) => {
  const faults = findFaults(new Map(Object.entries(sources)))
  expect(faults).toEqual(fault === undefined ? [] : [expect.stringMatching(fault)])
})

it.each<[string, Record<string, string>, RegExp | undefined]>([
  ['a layer below', { 'src/search/a.ts': `import { b } from './sql/b.ts'\n` }, undefined],
  ['a layer above', { 'src/search/sql/b.ts': `import { a } from '../a.ts'\n` }, /in search, sql is not above \./],
  ['a layer beside', { 'src/search/page/b.ts': `import { a } from '../sql/a.ts'\n` }, /page is not above sql/],
  [
    'a folder without a layer',
    { 'src/search/new/b.ts': `import { a } from '../a.ts'\n` },
    /names no layer of search for new/,
  ],
  [
    'a module without layers',
    { 'src/auth/a.ts': `import { b } from './sql/b.ts'\n` },
    /has no layers for the folders of auth/,
  ],
])('layers: %s', (_, sources, fault) => {
  const layers = readLayers('search: . > page sql > filter\n')
  const faults = findFaults(new Map(Object.entries(sources)), layers)
  expect(faults).toEqual(fault === undefined ? [] : [expect.stringMatching(fault)])
})

it.each([
  ['await knex.raw<Row>(text)', 1],
  ['const text = `\n  select id from payments`', 1],
  ["const text = 'delete from payments'", 1],
  ["const text = 'select a wallet'", 0],
])('SQL outside of its folders: %s', (source, count) => {
  expect(findFaults(new Map([['src/search/a.ts', source]]))).toHaveLength(count)
  expect(findFaults(new Map([['src/search/sql/a.ts', source]]))).toEqual([])
})

it('a cycle, also of types and lazy imports', () => {
  const sources = {
    'src/search/a.ts': `import type { B } from './b.ts'\n`,
    'src/search/b.ts': `const c = await import('./c.ts')\n`,
    'src/search/c.ts': `import { a } from './a.ts'\n`,
  }
  expect(findFaults(new Map(Object.entries(sources)))[0]).toContain(
    'src/search/a.ts -> src/search/b.ts -> src/search/c.ts -> src/search/a.ts',
  )
})

it('folders with many files, and files of one name', () => {
  const many = Array.from({ length: 21 }, (_, nth) => [`src/search/file${nth}.ts`, ANY] as const)
  expect(findFaults(new Map(many))).toEqual([expect.stringMatching(/^src\/search: 21 files/)])
  const duplicates = ['src/search/check-node.ts', 'src/nodes/node-check.ts']
  expect(findFaults(new Map(duplicates.map((path) => [path, ANY])))).toEqual([expect.stringContaining('have one name')])
})
