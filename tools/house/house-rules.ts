/**
 * The rules of the house that no linter has, as functions over paths and sources: files a folder, twins, import cycles,
 * and how many lines of a function are code. tools/house/check-house.ts runs them.
 */
import { posix } from 'node:path'
import { isSqlStatement } from './import-rules.ts'
import { scanSource } from './source-scan.ts'

/** One place that breaks a rule. `name` has no line number, so that a list of exceptions outlives edits above the place. */
export type Finding = {
  readonly rule: HouseRule
  readonly name: string
  /** Number of files or lines; 1 for a rule that counts nothing. */
  readonly size: number
  /** Where the place is and what to do. */
  readonly message: string
}

export type HouseRule = 'files a folder' | 'lines a function' | 'twins' | 'import cycles' | 'import rules'

const MAX_FILES_IN_FOLDER = 20
export const MAX_LINES_OF_FUNCTION = 80

/** @param paths - TypeScript files from the project's root; tests and migrations do not count */
export function findCrowdedFolders(paths: readonly string[]): Finding[] {
  const counted = paths.filter((path) => !isTest(path) && !posix.dirname(path).endsWith('/migrations'))
  return [...Map.groupBy(counted, (path) => posix.dirname(path))].flatMap(([folder, { length: size }]) => {
    if (size <= MAX_FILES_IN_FOLDER) return []
    const advice = 'split it by idea into folders that one sentence each describes, not to lower the number'
    const message = `${folder}: ${size} files, at most ${MAX_FILES_IN_FOLDER}: ${advice}`
    return [{ rule: 'files a folder', name: folder, size, message }]
  })
}

/** Files of one base name, or of the same words in another order (`check-node`, `node-check`), in whatever folders. */
export function findTwins(paths: readonly string[]): Finding[] {
  const counted = paths.filter((path) => !isTest(path) && !posix.dirname(path).endsWith('/migrations'))
  const words = (path: string) =>
    posix
      .basename(path)
      .replace(/\.tsx?$/, '')
      .split('-')
      .toSorted()
      .join('-')
  return [...Map.groupBy(counted, words).values()].flatMap((twins) => {
    if (twins.length === 1) return []
    const name = twins.toSorted().join(' ')
    const advice = 'merge them if they are one idea, else name each for what it alone does'
    return [{ rule: 'twins', name, size: twins.length, message: `${twins.join(' and ')} have one name: ${advice}` }]
  })
}

type ImportEdge = { readonly from: string; readonly to: string; readonly line: number }

/**
 * Every import that is part of a cycle of files. Imports of types and `import()` count, because a reader follows them too; the linter's
 * no-cycle does not see `import('./a.ts').A` and `import('./a.ts')`.
 */
export function findCycles(sources: ReadonlyMap<string, string>): Finding[] {
  const imports = new Map(
    [...sources].map(([path, source]) => [path, readEdges(path, source).filter(({ to }) => sources.has(to))]),
  )
  return [...imports.values()].flat().flatMap((edge) => {
    const back = findPath(imports, edge.to, edge.from)
    if (back === undefined) return []
    const cycle = [edge.from, ...back].join(' -> ')
    const message = `${edge.from}:${edge.line}: cycle of imports: ${cycle}: move what both need into a file below them`
    return [{ rule: 'import cycles', name: `${edge.from} -> ${edge.to}`, size: 1, message }]
  })
}

function readEdges(from: string, source: string): ImportEdge[] {
  return scanSource(source)
    .imports.filter(({ specifier }) => specifier.startsWith('.'))
    .map(({ specifier, line }) => ({ from, to: posix.join(posix.dirname(from), specifier), line }))
}

/** @returns the files of the shortest path, both ends included; undefined when there is none */
function findPath(imports: ReadonlyMap<string, readonly ImportEdge[]>, start: string, end: string) {
  const cameFrom = new Map<string, string | undefined>([[start, undefined]])
  for (const path of cameFrom.keys()) {
    if (path === end) return tracePath(cameFrom, end)
    for (const { to } of imports.get(path) ?? []) if (!cameFrom.has(to)) cameFrom.set(to, path)
  }
  return undefined
}

function tracePath(cameFrom: ReadonlyMap<string, string | undefined>, end: string): string[] {
  const path: string[] = []
  for (let at: string | undefined = end; at !== undefined; at = cameFrom.get(at)) path.unshift(at)
  return path
}

/** Lines of a function without those inside an SQL statement or a table of data. */
export function countLinesOfCode(functionSource: string): number {
  const { code, literals } = scanSource(functionSource)
  const sql = literals.filter(({ text }) => isSqlStatement(text)).map(({ text }) => countNewlines(text))
  return countNewlines(functionSource) + 1 - sum([...sql, ...findTables(code).map(countNewlines)])
}

/** A shorter literal is an argument, not a table. */
const MIN_LINES_OF_TABLE = 20

/** Array and object literals that hold neither functions nor statements; of nested ones the outermost. */
function findTables(code: string): string[] {
  const tables: string[] = []
  const open: { at: number; tables: number }[] = []
  for (const { 0: bracket, index } of code.matchAll(/[[\]{}]/g)) {
    if (bracket === '[' || bracket === '{') {
      open.push({ at: index, tables: tables.length })
      continue
    }
    const start = open.pop()
    if (start === undefined) continue
    const text = code.slice(start.at, index + 1)
    if (!isTable(text, code.slice(0, start.at))) continue
    tables.splice(start.tables, tables.length, text)
  }
  return tables
}

function isTable(text: string, before: string): boolean {
  const beginsLiteral = /(?:[=([,:?]|\breturn)\s*$/.test(before)
  const hasCode = /=>|\)\s*\{|\b(?:function|const|let|if|for|while|return|await|throw)\b/.test(text)
  return beginsLiteral && !hasCode && countNewlines(text) >= MIN_LINES_OF_TABLE
}

function countNewlines(text: string): number {
  return text.split('\n').length - 1
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}

function isTest(path: string): boolean {
  return path.endsWith('.test.ts')
}
