/**
 * Which room may import which, as data, and the check of sources against it. A room is the first folder under src/, or a file in src/; a
 * client that is published is a room of its own. tools/house/check-house.ts checks src/ and clients/; ARCHITECTURE.md draws the rules.
 */
import { posix } from 'node:path'
import { type SourceScan, scanSource } from './source-scan.ts'

export type SourceFile = { /** from the project's root, with `/` */ readonly path: string; readonly source: string }

export type Violation = { readonly path: string; readonly line: number; readonly rule: string }

type RoomRule = {
  /** Rooms from which anything may be imported; a room may always import from itself. */
  readonly may: readonly string[]
  /** Rooms from which only types may be imported. */
  readonly mayTypes?: readonly string[]
  readonly mayGenerated?: boolean
}

const bottom = ['domain', 'chains', 'contracts', 'errors'] as const
const middle = ['auth', 'requests', 'routing', 'search', 'detection', 'imports'] as const
const withDatabase: RoomRule = { may: [...bottom, 'store', 'postgres'] }
const withNodes: RoomRule = { may: [...bottom, 'store', 'postgres', 'nodes'] }

const rooms: Readonly<Record<string, RoomRule | 'sees all'>> = {
  main: 'sees all',
  app: 'sees all',
  cli: 'sees all',
  background: { may: ['domain'] },
  api: { may: [...bottom, 'transcoding'], mayTypes: middle, mayGenerated: true },
  auth: withDatabase,
  requests: withDatabase,
  routing: withNodes,
  search: withDatabase,
  detection: withNodes,
  imports: withDatabase,
  store: { may: [...bottom, 'postgres'] },
  postgres: { may: bottom },
  nodes: { may: bottom },
  config: { may: bottom },
  web: { may: ['errors'], mayTypes: ['api'] },
  demo: { may: bottom },
  observability: { may: ['errors'] },
  transcoding: { may: [] },
  chains: { may: ['domain', 'contracts'] },
  contracts: { may: ['domain'] },
  domain: { may: ['errors'] },
  errors: { may: [] },
}

/** Rooms that may import all rooms but not the generated code, which they get through the room api. */
const blindToGenerated = ['main', 'app']

/** @returns every violation, in the order of files and lines */
export function findViolations(files: readonly SourceFile[]): Violation[] {
  return files.flatMap((file) => {
    const scan = scanSource(file.source)
    const found = [...checkImports(file.path, scan), ...checkExports(file.path, scan), ...checkSql(file.path, scan)]
    return found.toSorted((left, right) => left.line - right.line)
  })
}

function checkImports(path: string, { imports }: SourceScan): Violation[] {
  const client = clientOf(path)
  if (client !== undefined) return checkClientImports(path, client, imports)
  const from = roomOf(path)
  const rule = rooms[from]
  const named =
    posix.basename(path) === 'index.ts' ? [{ path, line: 1, rule: 'no index.ts: name a file for its idea' }] : []
  if (rule === undefined) return [...named, { path, line: 1, rule: `the room ${from} stands in no rule; add it` }]
  const broken = imports.flatMap(({ specifier, line, typeOnly }) => {
    const reason = whyForbidden({ path, from, rule, specifier, typeOnly })
    return reason === undefined ? [] : [{ path, line, rule: reason }]
  })
  return [...named, ...broken]
}

/** `clients/typescript/src/calls.ts` → `clients/typescript/` */
function clientOf(path: string): string | undefined {
  return /^clients\/[^/]+\//.exec(path)?.[0]
}

/** A client is installed without the rest of the project. */
function checkClientImports(path: string, client: string, imports: SourceScan['imports']): Violation[] {
  const isTest = path.endsWith('.test.ts')
  return imports.flatMap(({ specifier, line }) => {
    const target = posix.join(posix.dirname(path), specifier)
    if (!specifier.startsWith('.') || target.startsWith(client) || isTest) return []
    return [{ path, line, rule: `a client imports nothing from outside its folder but packages (${specifier})` }]
  })
}

type Import = { path: string; from: string; rule: RoomRule | 'sees all'; specifier: string; typeOnly: boolean }

function whyForbidden({ path, from, rule, specifier, typeOnly }: Import): string | undefined {
  if (!specifier.startsWith('.')) return undefined
  const isTest = path.endsWith('.test.ts') || path.includes('/testdata/')
  const target = posix.join(posix.dirname(path), specifier)
  if (target.startsWith('gen/')) {
    const may = rule === 'sees all' ? !blindToGenerated.includes(from) : rule.mayGenerated === true
    return may || isTest ? undefined : `${from} does not import gen/ (${specifier})`
  }
  if (!/\.(?:tsx?|json)$/.test(specifier)) return `relative imports end in .ts (${specifier})`
  if (!target.startsWith('src/')) {
    return isTest ? undefined : `src/ imports nothing from outside but packages and gen/ (${specifier})`
  }
  return whyScreenForbidden(path, target) ?? whyRoomForbidden({ from, to: roomOf(target), rule, specifier, typeOnly })
}

/** A screen runs in a browser, on the published client: it shares the look with the others, and nothing with the process. */
function whyScreenForbidden(path: string, target: string): string | undefined {
  const [folder, screen] = /^src\/web\/(console|pay|look)\//.exec(path) ?? []
  if (folder === undefined || target.startsWith(folder) || target.startsWith('src/web/look/')) return undefined
  return `${screen} imports its own folder, look/ and packages alone (${posix.relative(posix.dirname(path), target)})`
}

function whyRoomForbidden({ from, to, rule, specifier, typeOnly }: Omit<Import, 'path'> & { to: string }) {
  if (from === to || rule === 'sees all' || rule.may.includes(to)) return undefined
  if (rule.mayTypes?.includes(to)) {
    return typeOnly ? undefined : `${from} imports only types from ${to} (${specifier})`
  }
  return `${from} does not import ${to} (${specifier})`
}

/** `src/search/cursor.ts` → search, `src/app.ts` → app */
function roomOf(path: string): string {
  return path.split('/')[1]!.replace(/(?:\.test)?\.ts$/, '')
}

function checkExports(path: string, { code }: SourceScan): Violation[] {
  return [...code.matchAll(/^export\s+default\b|^export\s*\{[^}]*\bas\s+default\b/gm)].map((match) => ({
    path,
    line: lineOf(code, match.index),
    rule: 'no default exports',
  }))
}

/** How SQL statements begin; a sentence that begins with the same word lacks the rest of the pattern. */
const sqlStatement =
  /^\s*(?:select\s[\s\S]*\bfrom\s|insert\s+into\s|update\s+\S+\s+set\s|delete\s+from\s|with\s+(?:recursive\s+)?\w+\s*(?:\([^)]*\)\s*)?as\s+(?:not\s+)?(?:materialized\s*)?\(|(?:create|alter|drop|truncate)\s+(?:unique\s+)?(?:table|index|view|materialized|extension|database|type|function)\b)/i

function checkSql(path: string, { code, literals }: SourceScan): Violation[] {
  const folders = path.split('/').slice(1, -1)
  const mayHoldSql = ['store', 'postgres'].includes(roomOf(path)) || folders.includes('sql')
  if (mayHoldSql || path.endsWith('.test.ts')) return []
  const rule = 'SQL stands in store/, postgres/ and folders named sql/ alone'
  return [
    ...[...code.matchAll(/\.raw\s*(?:<[^>]*>)?\s*\(/g)].map(({ index }) => ({ path, line: lineOf(code, index), rule })),
    ...literals.filter(({ text }) => isSqlStatement(text)).map(({ line }) => ({ path, line, rule })),
  ]
}

export function isSqlStatement(text: string): boolean {
  return sqlStatement.test(text)
}

function lineOf(code: string, index: number): number {
  return code.slice(0, index).split('\n').length
}
