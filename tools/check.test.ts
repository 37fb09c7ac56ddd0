import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { findDownloadAddresses, findRegistryHosts } from './check-repository.ts'
import { root } from './run-command.ts'

describe('the lint configuration', () => {
  let folder: string

  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'waybill-lint-'))
    for (const file of ['tsconfig.json', '.oxlintrc.json', 'package.json']) cpSync(join(root, file), join(folder, file))
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
    mkdirSync(join(folder, 'src'))
  })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  function lint(source: string): { code: number | null; rules: string[] } {
    writeFileSync(join(folder, 'src/planted.ts'), source)
    const { status, stdout } = spawnSync('oxlint', ['--format', 'json', 'src'], { cwd: folder, encoding: 'utf8' })
    const { diagnostics } = JSON.parse(stdout) as { diagnostics: { code: string }[] }
    return { code: status, rules: diagnostics.map(({ code }) => code) }
  }

  it.each([
    ['a forgotten await', 'export function f(save: () => Promise<void>) {\n  save()\n}\n', 'no-floating-promises'],
    [
      'a forgotten Knex builder',
      "import type { Knex } from 'knex'\nexport function f(db: Knex) {\n  db('payments').where({ id: 1 }).delete()\n}\n",
      'no-floating-promises',
    ],
    [
      'a promise as a condition',
      'export function f(isPaid: () => Promise<boolean>) {\n  return isPaid() ? 1 : 2\n}\n',
      'no-misused-promises',
    ],
    [
      'an unhandled member of a union',
      "export function f(kind: 'a' | 'b') {\n  switch (kind) {\n    case 'a':\n      return 1\n  }\n  return 2\n}\n",
      'switch-exhaustiveness-check',
    ],
    ['a thrown string', "export function f() {\n  throw 'no'\n}\n", 'only-throw-error'],
  ])('fails %s', (_fault, source, rule) => {
    const { code, rules } = lint(source)
    expect(rules.join()).toContain(rule)
    expect(code).toBe(1)
  })

  it('passes the same calls when awaited', () => {
    const source =
      "import type { Knex } from 'knex'\n" +
      "export async function f(db: Knex) {\n  await db('payments').where({ id: 1 }).delete()\n}\n"
    expect(lint(source)).toEqual({ code: 0, rules: [] })
  })
})

describe('findDownloadAddresses', () => {
  it('names each package that says where it comes from', () => {
    const packages = {
      '': { version: '1.0.0' },
      'node_modules/a': { version: '1.0.0' },
      'node_modules/b': { version: '1.0.0', resolved: 'https://packages.example/b.tgz' },
      'node_modules/c': { version: 'git+ssh://git@example/c.git' },
    }
    expect(findDownloadAddresses(JSON.stringify({ packages }))).toEqual([
      'node_modules/b comes from https://packages.example/b.tgz',
      'node_modules/c comes from git+ssh://git@example/c.git',
    ])
  })
})

describe('findRegistryHosts', () => {
  /** Put together here, so that this file names no such host itself. */
  const host = (...labels: string[]) => [...labels, 'example', 'org'].join('.')

  it.each([
    ['a host', `see ${host('registry')} for it`],
    ['a host behind a scheme', `url = "https://${host('npm', 'pkg')}/x"`],
    ['a setting of npm', 'registry = https://localhost:4873/'],
    ['a setting of one scope', '@waybill:registry=https://localhost:4873/'],
  ])('finds %s', (_kind, line) => {
    expect(findRegistryHosts(`first\n${line}`)).toEqual([expect.stringMatching(/^2: /)])
  })

  it.each(['createRegistry(file)', 'the registry. Common sense', 'registry.getMessage(name)', 'npm ci && npm start'])(
    'leaves %s alone',
    (line) => {
      expect(findRegistryHosts(line)).toEqual([])
    },
  )
})

describe('npm run check', () => {
  it('refuses the name of a check that does not exist', () => {
    const run = () =>
      execFileSync('node', [join(root, 'tools/check.ts'), 'nonsense'], { encoding: 'utf8', stdio: 'pipe' })
    expect(run).toThrow(/no check has a name with nonsense/)
  })
})
