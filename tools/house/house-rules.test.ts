import { describe, expect, it } from 'vitest'
import { findAdditions, judge, prune } from './house-exceptions.ts'
import { countLinesOfCode, type Finding, findCrowdedFolders, findCycles, findTwins } from './house-rules.ts'

const numbered = (count: number, nameOf: (number: number) => string) =>
  Array.from({ length: count }, (_, n) => nameOf(n))

describe('findCrowdedFolders', () => {
  it('reports a folder of 21 files with their number', () => {
    const paths = numbered(21, (n) => `src/api/f${n}.ts`)
    expect(findCrowdedFolders(paths)).toMatchObject([{ name: 'src/api', size: 21 }])
  })

  it.each([
    ['20 files', numbered(20, (n) => `src/api/f${n}.ts`)],
    ['tests', numbered(30, (n) => `src/api/f${n}.test.ts`)],
    ['migrations', numbered(30, (n) => `src/postgres/migrations/00${n}.ts`)],
    ['files of folders below', numbered(30, (n) => `src/api/${n % 3}/f${n}.ts`)],
  ])('passes %s', (_case, paths) => {
    expect(findCrowdedFolders(paths)).toEqual([])
  })
})

describe('findTwins', () => {
  it.each([
    ['one name in two rooms', ['src/a/prices.ts', 'src/b/prices.ts'], 'src/a/prices.ts src/b/prices.ts'],
    ['one name in a room and below it', ['src/a/x.ts', 'src/a/b/x.ts'], 'src/a/b/x.ts src/a/x.ts'],
    [
      'words in another order',
      ['src/a/node-check.ts', 'src/b/check-node.ts'],
      'src/a/node-check.ts src/b/check-node.ts',
    ],
  ])('reports %s', (_case, paths, name) => {
    expect(findTwins(paths)).toMatchObject([{ name, size: 2 }])
  })

  it.each([
    ['a test beside its file', ['src/a/x.ts', 'src/a/x.test.ts']],
    ['names with a word in common', ['src/a/check-node.ts', 'src/a/node.ts']],
    ['migrations', ['src/postgres/migrations/list.ts', 'src/requests/list.ts']],
  ])('passes %s', (_case, paths) => {
    expect(findTwins(paths)).toEqual([])
  })
})

describe('findCycles', () => {
  const cyclesOf = (sources: Record<string, string>) => findCycles(new Map(Object.entries(sources)))

  it.each([
    ['values', "import { b } from './b.ts'", "import { a } from './a.ts'"],
    ['types', "import type { B } from './b.ts'", "import { type A } from './a.ts'"],
    ['import types', "let b: import('./b.ts').B", "let a: import('./a.ts').A"],
    ['imports at run time', "const b = () => import('./b.ts')", "import { a } from './a.ts'"],
    ['exports', "export * from './b.ts'", "export type { A } from './a.ts'"],
  ])('reports both ends of a cycle of %s', (_case, a, b) => {
    expect(cyclesOf({ 'src/a.ts': a, 'src/b.ts': b })).toMatchObject([
      { name: 'src/a.ts -> src/b.ts', message: expect.stringMatching(/^src\/a\.ts:1: /) },
      { name: 'src/b.ts -> src/a.ts' },
    ])
  })

  it('names the files that a cycle passes', () => {
    const findings = cyclesOf({
      'src/a/a.ts': "\nimport '../b/b.ts'",
      'src/b/b.ts': "import './c.ts'",
      'src/b/c.ts': "import '../a/a.ts'",
    })
    expect(findings[0]!.message).toContain('src/a/a.ts:2: ')
    expect(findings[0]!.message).toContain('src/a/a.ts -> src/b/b.ts -> src/b/c.ts -> src/a/a.ts')
    expect(findings).toHaveLength(3)
  })

  it('reports a file that imports itself', () => {
    expect(cyclesOf({ 'src/a.ts': "import type { A } from './a.ts'" })).toHaveLength(1)
  })

  it('passes what is imported twice, and what a cycle imports', () => {
    const sources = { 'src/a.ts': "import './b.ts'\nimport './c.ts'", 'src/b.ts': "import './c.ts'", 'src/c.ts': '' }
    expect(cyclesOf(sources)).toEqual([])
  })
})

describe('countLinesOfCode', () => {
  const rows = (row: string) => `${row}\n`.repeat(30)

  it.each([
    ['code', `function f() {\n${rows('g()')}}`, 32],
    ['comments and blank lines', `function f() {\n${rows('\n// why')}}`, 62],
    ['a template that is no SQL', `function f() {\n  return \`\n${rows('text')}\`\n}`, 34],
    ['an SQL statement', `function f() {\n  return q(\`\n  select id from payments\n${rows('and true')}\`)\n}`, 3],
    ['a table', `function f() {\n  return [\n${rows("['a', named('b')],")}  ]\n}`, 3],
    ['a table of tables', `function f() {\n  const t = {\n a: [\n${rows("{ a: 'b' },")}  ],\n}\n}`, 3],
    ['a short list', `function f() {\n  return [\n    1,\n    2,\n  ]\n}`, 6],
    ['a list of functions', `function f() {\n  return [\n${rows('() => 1,')}  ]\n}`, 34],
    ['an object of methods', `function f() {\n  return {\n${rows('a() {\n},')}  }\n}`, 64],
    ['a block', `function f() {\n  if (a) {\n${rows('b += 1')}  }\n}`, 34],
    ['the block of a case', `switch (a) {\n  case 1: {\n${rows('return b')}  }\n}`, 34],
    ['brackets in a string', `function f() {\n  return ['[', '{',\n${rows('1,')}  ]\n}`, 3],
  ])('counts %s', (_case, source, lines) => {
    expect(countLinesOfCode(source)).toBe(lines)
  })
})

const long = (name: string, size: number): Finding => ({
  rule: 'lines a function',
  name,
  size,
  message: `${name} is long`,
})
const listed = (names: Record<string, number>) => ({ 'lines a function': names })

describe('judge', () => {
  it.each([
    ['passes what is listed', [long('a.ts f', 90)], { 'a.ts f': 90 }, []],
    ['passes what became smaller', [long('a.ts f', 85)], { 'a.ts f': 90 }, []],
    ['reports what is not listed', [long('a.ts f', 90)], {}, [/^a\.ts f is long$/]],
    ['reports what grew', [long('a.ts f', 91)], { 'a.ts f': 90 }, [/^a\.ts f is long .*allows 90/]],
    ['reports an entry that nothing breaks', [], { 'a.ts f': 90 }, [/"a\.ts f" breaks the rule no longer/]],
  ])('%s', (_case, findings, names, lines) => {
    expect(judge(findings, listed(names))).toEqual(lines.map((line) => expect.stringMatching(line)))
  })

  it('keeps the rules apart', () => {
    expect(judge([long('a', 90)], { twins: { a: 90 } })).toHaveLength(2)
  })
})

describe('prune', () => {
  it('takes out what is mended, lowers what got smaller, raises and adds nothing', () => {
    const findings = [long('smaller', 85), long('larger', 99), long('new', 90)]
    expect(prune({ twins: { x: 2 }, ...listed({ mended: 90, smaller: 90, larger: 90 }) }, findings)).toEqual(
      listed({ smaller: 85, larger: 90 }),
    )
  })
})

describe('findAdditions', () => {
  it.each([
    ['passes the same list', { 'a.ts f': 90 }, { 'a.ts f': 90 }, []],
    ['passes a shorter list', { 'a.ts f': 90 }, {}, []],
    ['passes an entry whose file moved', { 'src/a.ts f': 90 }, { 'src/b/a.ts f': 90 }, []],
    ['reports a new entry', { 'a.ts f': 90 }, { 'a.ts f': 90, 'a.ts g': 90 }, [/"a\.ts g" is new/]],
    ['reports a new entry of a known name', { 'a.ts f': 90 }, { 'a.ts f': 90, 'b.ts f': 90 }, [/"b\.ts f" is new/]],
    ['reports a larger number', { 'a.ts f': 90 }, { 'a.ts f': 91 }, [/raised from 90 to 91/]],
    ['reports a larger number of a moved file', { 'a.ts f': 90 }, { 'b/a.ts f': 91 }, [/raised from 90 to 91/]],
  ])('%s', (_case, before, now, lines) => {
    expect(findAdditions(listed(before), listed(now))).toEqual(lines.map((line) => expect.stringMatching(line)))
  })
})
