import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { findAll, findListBase } from './check-house.ts'
import { EXCEPTIONS_FILE } from './house-exceptions.ts'

const folders: string[] = []
afterAll(() => folders.forEach((folder) => rmSync(folder, { recursive: true, force: true })))

function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'waybill-house-'))
  folders.push(folder)
  return folder
}

function write(folder: string, path: string, text: string): void {
  mkdirSync(dirname(join(folder, path)), { recursive: true })
  writeFileSync(join(folder, path), text)
}

describe('findAll', () => {
  const body = '  g()\n'.repeat(85)
  const forms = {
    'a function': [`export function f() {\n${body}}\n`, 'f'],
    'an arrow in a constant': [`export const f = () => {\n${body}}\n`, 'f'],
    'a method': [`export class A {\n  f() {\n${body}  }\n}\n`, 'f'],
    'a private arrow of a class': [`export class A {\n  #f = () => {\n${body}  }\n}\n`, 'f'],
    'a getter': [`export class A {\n  get f() {\n${body}    return 1\n  }\n}\n`, 'f'],
    'a method of an object': [`export const a = {\n  f() {\n${body}  },\n}\n`, 'f'],
    'a function called at once': [`;(() => {\n${body}})()\n`, ';(() => {'],
    'a generator': [`export function* f() {\n${body}}\n`, 'f'],
    'a closure behind a letter of two bytes': [`const é = 1\nexport const a = [1].map(() => {\n${body}})\n`, 'a'],
  } as const

  it('measures every form of function, and tells of each by file, line and name', async () => {
    const folder = makeFolder()
    for (const name of ['tools', 'bench', 'test']) mkdirSync(join(folder, name))
    Object.values(forms).forEach(([source], n) => write(folder, `src/domain/f${n}.ts`, source))
    write(folder, 'src/domain/group.test.ts', `describe('a group', () => {\n${body}})\n`)
    const findings = await findAll(folder)
    const expected = Object.values(forms).map(([, name], n) => ({
      rule: 'lines a function',
      name: `src/domain/f${n}.ts ${name}`,
    }))
    const byName = findings.toSorted((left, right) => left.name.localeCompare(right.name))
    expect(byName).toMatchObject(expected)
    expect(byName[0]!.message).toMatch(/^src\/domain\/f0\.ts:1: f has 87 lines, at most 80: /)
  })

  it('tells of a broken import rule by file and line', async () => {
    const folder = makeFolder()
    for (const name of ['tools', 'bench', 'test']) mkdirSync(join(folder, name))
    write(folder, 'src/domain/a.ts', "\nimport { b } from '../search/b.ts'\nexport const a = b\n")
    expect(await findAll(folder)).toMatchObject([
      { rule: 'import rules', message: 'src/domain/a.ts:2: domain does not import search (../search/b.ts)' },
    ])
  })
})

describe('findListBase', () => {
  let origin: string
  const git = (folder: string, ...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b.c', ...args], { cwd: folder, stdio: 'pipe' })
  const commitList = (folder: string, size: number) => {
    write(folder, EXCEPTIONS_FILE, JSON.stringify({ twins: { a: size } }))
    git(folder, 'add', '.')
    git(folder, 'commit', '-qm', `a list of ${size}`)
  }
  const clone = (...args: string[]) => {
    const folder = makeFolder()
    git(folder, 'clone', '-q', ...args, `file://${origin}`, '.')
    return folder
  }
  const listOf = (size: number) => ({ exceptions: { twins: { a: size } } })

  /** main: no list, 3, 2; topic: from the list of 3. */
  beforeAll(() => {
    origin = makeFolder()
    git(origin, 'init', '-q', '-b', 'main')
    git(origin, 'commit', '-q', '--allow-empty', '-m', 'nothing')
    commitList(origin, 3)
    git(origin, 'branch', 'topic')
    commitList(origin, 2)
  })

  it('takes the commit before on main, and HEAD itself where the list is changed', async () => {
    const folder = clone()
    expect(await findListBase(folder)).toEqual(listOf(3))
    write(folder, EXCEPTIONS_FILE, '{}')
    expect(await findListBase(folder)).toEqual(listOf(2))
  })

  it('takes the commit at which a branch left main, not the newest of main', async () => {
    const folder = clone('-b', 'topic')
    commitList(folder, 1)
    expect(await findListBase(folder)).toEqual(listOf(3))
  })

  it.each([
    ['a shallow clone of main', ['--depth', '1'], 'no commit before this one'],
    ['a shallow clone of a branch', ['--depth', '1', '-b', 'topic'], 'shares with main'],
  ])('has none in %s, and says why', async (_case, args, reason) => {
    expect(await findListBase(clone(...args))).toEqual({ reason: expect.stringContaining(reason) })
  })

  it('has none where the base has no list, nor where there is no git', async () => {
    const folder = clone()
    git(folder, 'reset', '-q', '--hard', 'HEAD^')
    git(folder, 'update-ref', 'refs/remotes/origin/main', 'HEAD')
    expect(await findListBase(folder)).toEqual({ reason: expect.stringContaining('has no list yet') })
    expect(await findListBase(makeFolder())).toEqual({ reason: 'git finds no commit here' })
  })
})
