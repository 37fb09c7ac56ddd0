/**
 * Checks of the house's shape: files a folder, lines a function, twins, import cycles, import rules; run by tools/check.ts.
 * The places that broke a rule when it was introduced are listed in tools/house/house-exceptions.json.
 *
 *   node tools/house/check-house.ts            prints the places that are not listed, with file and line
 *   node tools/house/check-house.ts --prune    removes from the list the places that no longer break their rule
 */
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type CheckResult, readGit, root, runCommand } from '../run-command.ts'
import { EXCEPTIONS_FILE, type Exceptions, findAdditions, judge, prune } from './house-exceptions.ts'
import {
  countLinesOfCode,
  type Finding,
  findCrowdedFolders,
  findCycles,
  findTwins,
  MAX_LINES_OF_FUNCTION,
} from './house-rules.ts'
import { findViolations } from './import-rules.ts'
import { importsAlone } from './source-scan.ts'

const folders = ['src', 'clients/typescript/src', 'tools', 'bench', 'test']

export async function checkHouse(): Promise<CheckResult> {
  const findings = await findAll(root)
  const lines = judge(findings, readExceptions())
  return { outcome: lines.length === 0 ? 'ok' : 'failed', output: lines.join('\n') }
}

/** Compares the list with that of the commit where this branch left main. Skips in a clone without that commit. */
export async function checkExceptions(): Promise<CheckResult> {
  const base = await findListBase(root)
  if ('reason' in base) return { outcome: 'skipped', output: base.reason }
  const additions = findAdditions(base.exceptions, readExceptions())
  return { outcome: additions.length === 0 ? 'ok' : 'failed', output: additions.join('\n') }
}

type ListBase = { readonly exceptions: Exceptions } | { readonly reason: string }

/**
 * The base is where HEAD left main; on main itself the commit before, unless the list is changed and not yet committed.
 *
 * @param folder - a work tree of git
 */
export async function findListBase(folder: string): Promise<ListBase> {
  const git = (...args: string[]) => readGit(folder, ...args)
  const head = await git('rev-parse', '--verify', '--quiet', 'HEAD')
  if (head === undefined) return { reason: 'git finds no commit here' }
  const mains = ['refs/heads/main', 'refs/remotes/origin/main']
  const forks = await Promise.all(mains.map((main) => git('merge-base', 'HEAD', main)))
  const fork = forks.find((commit) => commit !== undefined)
  if (fork === undefined) return { reason: 'the clone holds no commit that this branch shares with main' }
  const isUnchanged = (await git('diff', '--quiet', 'HEAD', '--', EXCEPTIONS_FILE)) !== undefined
  const base = fork === head && isUnchanged ? 'HEAD^' : fork
  if ((await git('rev-parse', '--verify', '--quiet', base)) === undefined) {
    return { reason: 'the clone holds no commit before this one' }
  }
  const list = await git('show', `${base}:${EXCEPTIONS_FILE}`)
  return list === undefined ? { reason: `${base.slice(0, 7)} has no list yet` } : { exceptions: JSON.parse(list) }
}

/** @returns every place that breaks a rule, listed or not */
export async function findAll(folder: string): Promise<Finding[]> {
  const paths = globSync(
    folders.map((name) => `${name}/**/*.{ts,tsx}`),
    { cwd: folder },
  ).toSorted()
  const sources = new Map(paths.map((path) => [path, readSource(folder, path)]))
  const inSrc = paths.filter((path) => path.startsWith('src/'))
  const inRooms = paths.filter((path) => path.startsWith('src/') || path.startsWith('clients/'))
  const violations = findViolations(inRooms.map((path) => ({ path, source: sources.get(path)! })))
  return [
    ...findCrowdedFolders(paths),
    ...(await findLongFunctions(folder)),
    ...findTwins(inSrc),
    ...findCycles(sources),
    ...violations.map(({ path, line, rule }) => ({
      rule: 'import rules' as const,
      name: `${path} ${rule}`,
      size: 1,
      message: `${path}:${line}: ${rule}`,
    })),
  ]
}

function readSource(folder: string, path: string): string {
  const source = readFileSync(join(folder, path), 'utf8')
  return path.endsWith('.tsx') ? importsAlone(source) : source
}

type Diagnostic = {
  message: string
  filename: string
  labels: { span: { offset: number; length: number; line: number } }[]
}

async function findLongFunctions(folder: string): Promise<Finding[]> {
  const args = ['--config', join(root, 'tools/house/house-lint.json'), '--disable-nested-config', '--format', 'json']
  const { output } = await runCommand('oxlint', [...args, ...folders], folder)
  const { diagnostics } = JSON.parse(output.slice(0, output.lastIndexOf('}') + 1)) as { diagnostics: Diagnostic[] }
  const found = diagnostics.flatMap(({ message, filename, labels }) => {
    const { offset, length, line } = labels[0]!.span
    const bytes = readFileSync(join(folder, filename))
    const size = countLinesOfCode(bytes.subarray(offset, offset + length).toString())
    const name = /`(.+?)`/.exec(message)?.[1] ?? nameOf(bytes.toString(), line)
    const groupsTests = filename.endsWith('.test.ts') && name.startsWith('describe')
    if (size <= MAX_LINES_OF_FUNCTION || groupsTests) return []
    const advice = 'make its steps values and functions that can be read and tested apart'
    const text = `${filename}:${line}: ${name} has ${size} lines, at most ${MAX_LINES_OF_FUNCTION}: ${advice}`
    return [{ rule: 'lines a function' as const, name: `${filename} ${name}`, size, message: text }]
  })
  // Sorted, because the linter reports in the order in which its threads end.
  return found.toSorted((left, right) => (left.name < right.name ? -1 : 1))
}

/** A name for a function without one, from its first line: `const x = () => {` → `x`, else the text of the line. */
function nameOf(source: string, line: number): string {
  const text = source.split('\n')[line - 1]!.trim()
  return /^(?:export )?(?:const|let) (\w+)/.exec(text)?.[1] ?? text
}

function readExceptions(): Exceptions {
  return JSON.parse(readFileSync(join(root, EXCEPTIONS_FILE), 'utf8')) as Exceptions
}

if (import.meta.main) {
  if (process.argv.includes('--prune')) {
    const pruned = prune(readExceptions(), await findAll(root))
    writeFileSync(join(root, EXCEPTIONS_FILE), `${JSON.stringify(pruned, null, 2)}\n`)
  }
  const { outcome, output } = await checkHouse()
  if (output !== '') console.log(output)
  process.exitCode = outcome === 'ok' ? 0 : 1
}
