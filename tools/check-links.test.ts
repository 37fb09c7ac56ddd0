import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { anchorsOf, findDeadLinks, findUnknownFiles, linksOf } from './check-links.ts'

describe('findDeadLinks', () => {
  let root = ''
  beforeAll(() => {
    root = mkdtempSync(join(tmpdir(), 'waybill-links-'))
    mkdirSync(join(root, 'docs'))
    writeFileSync(join(root, 'docs/b.md'), '# B\n\n## What `x` is\n')
    writeFileSync(join(root, 'schema.json'), '{}')
  })
  afterAll(() => {
    rmSync(root, { recursive: true })
  })

  it.each([
    ['[b](docs/b.md)', []],
    ['[b](docs/b.md#what-x-is)', []],
    ['[s](schema.json)', []],
    ['# Top\n[here](#top)', []],
    ['[web](https://example.org/none#x)', []],
    ['```\n[x](none.md)\n```', []],
    ['text\n[c](docs/c.md)', ['a.md:2: there is no docs/c.md']],
    ['[b](docs/b.md#none)', ['a.md:1: docs/b.md has no heading for #none']],
    ['[here](#none)', ['a.md:1: a.md has no heading for #none']],
  ])('%j gives %j', (markdown, dead) => {
    writeFileSync(join(root, 'a.md'), markdown)
    expect(findDeadLinks(root, ['a.md'])).toEqual(dead)
  })
})

it('finds several links of a line', () => {
  expect(linksOf('[a](x.md) and [b](y.md#z)').map(({ target }) => target)).toEqual(['x.md', 'y.md#z'])
})

it('makes anchors without punctuation', () => {
  expect([...anchorsOf("## Who paid?\n### What LI.FI isn't")]).toEqual(['who-paid', 'what-lifi-isnt'])
})

it.each([
  ['`domain/chain.ts`', []],
  ['`chain.ts` and `src/domain/chain.ts`', []],
  ['`main.ts`', ['A.md:1: there is no main.ts']],
  ['`hain.ts`', ['A.md:1: there is no hain.ts']],
  ['`npm test`', []],
])('of the files in %s it finds unknown %j', (markdown, unknown) => {
  expect(findUnknownFiles('A.md', markdown, ['src/domain/chain.ts'])).toEqual(unknown)
})
