/**
 * The rules of the code's structure that no linter has: which module imports which, the layers inside each, no cycle of files, where SQL
 * stands, few files in a folder, no two files of one name. ARCHITECTURE.md draws the modules and lists their layers. A module is the first
 * folder under src/ or apps/, a file in one of them, or demo/.
 */
import { globSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { type CheckResult, root } from './run-command.ts'

/** Source texts by their paths from the project's root. */
export type Sources = ReadonlyMap<string, string>

/** The layers of each module from the top: folders of the module, `.` for its own files. */
export type Layers = ReadonlyMap<string, readonly (readonly string[])[]>

interface ModuleRule {
  /** Modules from which anything may be imported; a module may always import from itself. */
  readonly may: readonly string[]
  /** Modules from which only types may be imported. */
  readonly mayTypes?: readonly string[]
}

const bottom = ['domain', 'chains', 'contracts', 'errors']
const middle = ['auth', 'requests', 'routing', 'search', 'detection', 'imports', 'webhooks']
const withDatabase: ModuleRule = { may: [...bottom, 'store', 'postgres'] }
const withNodes: ModuleRule = { may: [...withDatabase.may, 'nodes'] }
const everything: ModuleRule = { may: ['*'] }

const modules: Readonly<Record<string, ModuleRule>> = {
  main: everything,
  app: everything,
  cli: everything,
  background: { may: ['domain'] },
  api: { may: [...bottom, 'transcoding'], mayTypes: middle },
  auth: withDatabase,
  requests: withDatabase,
  routing: withNodes,
  search: withDatabase,
  detection: withNodes,
  imports: { may: [...withDatabase.may, 'transcoding'] },
  webhooks: withDatabase,
  store: { may: [...bottom, 'postgres'] },
  postgres: { may: bottom },
  nodes: { may: bottom },
  config: { may: bottom },
  demo: { may: bottom },
  'apps/build': { may: ['apps/bundle', 'apps/reference'] },
  'apps/bundle': { may: [] },
  'apps/reference': { may: ['api', 'apps/bundle'] },
  'apps/console': { may: ['apps/shared'] },
  'apps/pay': { may: ['apps/shared'] },
  'apps/shared': { may: [] },
  observability: { may: ['domain', 'errors'] },
  transcoding: { may: [] },
  chains: { may: ['domain', 'contracts', 'errors'] },
  contracts: { may: ['domain'] },
  domain: { may: ['errors'] },
  errors: { may: [] },
}

/** The modules that import the generated code; the others get it through api. */
const withGenerated = ['api', 'cli']
const MAX_FILES_IN_FOLDER = 20

export async function checkModules(): Promise<CheckResult> {
  const folders = ['src', 'apps', 'demo', 'clients/typescript/src', 'tools', 'bench', 'test']
  const patterns = folders.map((name) => `${name}/**/*.{ts,tsx}`)
  const paths = globSync(patterns, { cwd: root }).toSorted()
  const layers = readLayers(readFileSync(join(root, 'ARCHITECTURE.md'), 'utf8'))
  const faults = findFaults(new Map(paths.map((path) => [path, readFileSync(join(root, path), 'utf8')])), layers)
  return { outcome: faults.length === 0 ? 'ok' : 'failed', output: faults.join('\n') }
}

/** Reads the lines `auth: . > sql > rules` of ARCHITECTURE.md. */
export function readLayers(markdown: string): Layers {
  const lines = [...markdown.matchAll(/^([\w/]+): (\S.* > .*)$/gm)]
  return new Map(lines.map(([, name = '', text = '']) => [name, text.split(' > ').map((layer) => layer.split(' '))]))
}

/** @returns a line for each place that breaks a rule */
export function findFaults(sources: Sources, layers: Layers = new Map()): string[] {
  const counted = [...sources.keys()].filter((path) => !isTest(path) && !path.includes('/migrations/'))
  return [
    ...[...sources].flatMap(([path, source]) => [...checkImports(path, source), ...checkSql(path, source)]),
    ...[...sources].flatMap(([path, source]) => checkLayers(path, source, layers)),
    ...findCycles(sources),
    ...findCrowdedFolders(counted),
    ...findSameNames(counted.filter(isModular)),
  ]
}

interface Import {
  readonly specifier: string
  /** The file that it names, from the project's root; absent for a package. */
  readonly target?: string | undefined
  readonly typeOnly: boolean
}

/** Statements as biome prints them: `import … from 'n'`, `export … from 'n'`, `import 'n'`, and `import('n')` anywhere. */
function importsOf(path: string, source: string): Import[] {
  const pattern =
    /^(?:import|export) (?<type>type )?(?:[\w*{}$,\s]+? from )?'(?<from>[^']+)'|(?<query>typeof )?\bimport\(\s*'(?<lazy>[^']+)'\s*\)/gm
  return [...source.matchAll(pattern)].map(({ 0: statement, groups = {} }) => {
    const specifier = groups['from'] ?? groups['lazy'] ?? ''
    const names = /\{([^}]*)\}/
      .exec(statement)?.[1]
      ?.split(',')
      .flatMap((name) => name.trim() || [])
    const areTypes = names !== undefined && names.length > 0 && names.every((name) => name.startsWith('type '))
    const target = specifier.startsWith('.') ? posix.join(posix.dirname(path), specifier) : undefined
    return { specifier, target, typeOnly: Boolean(groups['type'] ?? groups['query']) || areTypes }
  })
}

function checkImports(path: string, source: string): string[] {
  if (posix.basename(path) === 'index.ts') return [`${path}: no index.ts: name a file for its idea`]
  return importsOf(path, source).flatMap((each) => {
    const reason = whyForbidden(path, each)
    return reason === undefined ? [] : [`${path}: ${reason} (${each.specifier})`]
  })
}

function whyForbidden(path: string, { target, typeOnly }: Import): string | undefined {
  // The file of the package says which release it is.
  if (target === undefined || target === 'package.json' || isTest(path)) return undefined
  const [client] = /^clients\/[^/]+\//.exec(path) ?? []
  if (client !== undefined) {
    return target.startsWith(client) ? undefined : 'a client imports nothing from outside its folder but packages'
  }
  if (!isModular(path)) return undefined
  const from = moduleOf(path)
  const rule = modules[from]
  if (rule === undefined) return `the module ${from} has no rule; add it to tools/check-modules.ts`
  if (target.startsWith('gen/')) return withGenerated.includes(from) ? undefined : `${from} does not import gen/`
  if (!isModular(target)) return `${from} imports nothing from outside but packages`
  const to = moduleOf(target)
  if (from === to || rule.may.includes('*') || rule.may.includes(to)) return undefined
  if (rule.mayTypes?.includes(to) === true) return typeOnly ? undefined : `${from} imports only types from ${to}`
  return `${from} does not import ${to}`
}

/** Whether the rules of modules hold for a file. */
function isModular(path: string): boolean {
  return /^(?:src|apps|demo)\//.test(path)
}

/** `src/search/cursor.ts` → search, `src/app.ts` → app, `apps/pay/pay.tsx` → apps/pay, `demo/network/anvil.ts` → demo */
function moduleOf(path: string): string {
  const [top = '', second = ''] = path.split('/')
  if (top === 'demo') return top
  const name = second.replace(/(?:\.test)?\.ts$/, '')
  return top === 'apps' ? `apps/${name}` : name
}

/** A folder of a module imports from the layers below its own alone, never from one beside it. */
function checkLayers(path: string, source: string, layers: Layers): string[] {
  const module = moduleOf(path)
  const known = layers.get(module)
  if (!isModular(path) || isTest(path)) return []
  const top = module.startsWith('apps/') || module === 'demo' ? module : `src/${module}`
  const folderOf = (file: string) => posix.relative(top, posix.dirname(file)) || '.'
  const from = folderOf(path)
  const below = importsOf(path, source).flatMap(({ target, specifier }) => {
    const isWithin = target?.startsWith(`${top}/`) === true
    return isWithin && folderOf(target) !== from ? [{ to: folderOf(target), specifier }] : []
  })
  if (known === undefined) {
    return below.length === 0 ? [] : [`${path}: ARCHITECTURE.md has no layers for the folders of ${module}`]
  }
  const levelOf = (folder: string) => known.findIndex((layer) => layer.includes(folder))
  return below.flatMap(({ to, specifier }) => {
    const missing = [from, to].find((folder) => levelOf(folder) === -1)
    if (missing !== undefined) return [`${path}: ARCHITECTURE.md names no layer of ${module} for ${missing}`]
    return levelOf(from) < levelOf(to) ? [] : [`${path}: in ${module}, ${from} is not above ${to} (${specifier})`]
  })
}

/** How SQL statements begin, in a literal or as a call of Knex. */
const sqlStatement =
  /\.raw\s*(?:<[^>]*>)?\s*\(|['`]\s*(?:select\s[^'`]*\bfrom\s|insert\s+into\s|update\s+\S+\s+set\s|delete\s+from\s|with\s+\w+\s+as\s|(?:create|alter|drop|truncate)\s+(?:table|index|view)\b)/i

function checkSql(path: string, source: string): string[] {
  const folders = path.split('/').slice(1, -1)
  const mayHold = ['store', 'postgres'].includes(moduleOf(path)) || folders.includes('sql')
  if (mayHold || isTest(path) || !path.startsWith('src/') || !sqlStatement.test(source)) return []
  return [`${path}: SQL stands in store/, postgres/ and folders named sql/ alone`]
}

/** Every import that is part of a cycle of files, imports of types and `import()` included. */
function findCycles(sources: Sources): string[] {
  const imports = new Map(
    [...sources].map(([path, source]) => [
      path,
      importsOf(path, source).flatMap(({ target = '' }) => (sources.has(target) ? [target] : [])),
    ]),
  )
  const pathBetween = (start: string, end: string): string[] | undefined => {
    const before = new Map<string, string | undefined>([[start, undefined]])
    for (const at of before.keys()) {
      for (const next of imports.get(at) ?? []) if (!before.has(next)) before.set(next, at)
    }
    if (!before.has(end)) return undefined
    const found: string[] = []
    for (let at: string | undefined = end; at !== undefined; at = before.get(at)) found.unshift(at)
    return found
  }
  return [...imports].flatMap(([path, targets]) =>
    targets.flatMap((target) => {
      const back = pathBetween(target, path)
      return back === undefined ? [] : [`${path}: cycle of imports: ${[path, ...back].join(' -> ')}`]
    }),
  )
}

function findCrowdedFolders(paths: readonly string[]): string[] {
  const crowded = [...Map.groupBy(paths, (path) => posix.dirname(path))].filter(
    ([, files]) => files.length > MAX_FILES_IN_FOLDER,
  )
  return crowded.map(
    ([folder, { length }]) =>
      `${folder}: ${length} files, at most ${MAX_FILES_IN_FOLDER}: it is more than one module, or its small files are one`,
  )
}

/** Files of one name, or of the same words in another order (`check-node`, `node-check`). */
function findSameNames(paths: readonly string[]): string[] {
  const wordsOf = (path: string) =>
    posix
      .basename(path)
      .replace(/\.tsx?$/, '')
      .split('-')
      .toSorted()
      .join('-')
  const duplicates = [...Map.groupBy(paths, wordsOf).values()].filter(({ length }) => length > 1)
  return duplicates.map(
    (files) => `${files.join(' and ')} have one name: merge them, or name each for what it alone does`,
  )
}

function isTest(path: string): boolean {
  return path.endsWith('.test.ts') || path.includes('/testdata/')
}
