/**
 * Builds what browsers are served into apps/dist: the console, the checkout page and the documentation. `manifest.json` is written last, so
 * that a service never serves half of a build.
 *
 *   node apps/build.ts              builds
 *   node apps/build.ts --if-stale   builds where apps/dist is missing or older than its sources
 *   node apps/build.ts --if-stale --after PORT   the same once the service beside it listens, so that its start has the processor
 */
import { execFile } from 'node:child_process'
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { dirname, join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { parseArgs, promisify } from 'node:util'
import { brotliCompress, gzip } from 'node:zlib'
import { type BuiltFile, digestOf, digestOfFiles } from './bundle/built-file.ts'

const root = join(import.meta.dirname, '..')
const dist = join(root, 'apps/dist')
const manifestPath = join(dist, 'manifest.json')

/** What the build reads. Tests and what it wrote itself do not count. */
const SOURCES = [
  'apps/{bundle,console,pay,reference,shared}/**/*.*',
  'apps/*.ts',
  'clients/typescript/src/**/*.ts',
  'docs/**/*.*',
  'gen/**/*.*',
  'proto{,_vendor}/**/*.proto',
  'src/{api,errors,transcoding}/**/*.ts',
  'tools/client/*.ts',
  '{README,CHANGELOG}.md',
  'package*.json',
]

/** What stands in `manifest.json`. */
interface Manifest {
  /** A digest of the sources. */
  readonly sources: string
  /** The digest of each file. */
  readonly files: Readonly<Record<string, string>>
}

/** How long the build waits for the service, in milliseconds. */
const START_MS = 15_000
const CHECK_EVERY_MS = 200

const { values } = parseArgs({
  options: { 'if-stale': { type: 'boolean', default: false }, after: { type: 'string' } },
})
try {
  if (values.after !== undefined) await untilListening(Number(values.after))
  const digest = digestOfFiles(root, SOURCES)
  if (!values['if-stale'] || (await readManifest())?.sources !== digest) await buildApps(digest)
} catch (error) {
  // buf and esbuild have their programs in optional packages; what they say of that is an error's stack.
  const text = String(error)
  const hasNoProgram = /spawn\w* \S+ ENOENT|you need the .* package/i.exec(text)?.[0]
  const isNotInstalled = error instanceof Error && 'code' in error && error.code === 'ERR_MODULE_NOT_FOUND'
  const remedy =
    isNotInstalled || hasNoProgram !== undefined
      ? ' (run `npm ci` without --omit, or copy apps/dist from where it was built)'
      : ''
  console.error(`apps/dist is missing or older than its sources and cannot be built: ${hasNoProgram ?? text}${remedy}`)
  process.exitCode = 1
}

async function untilListening(port: number): Promise<void> {
  const giveUpAtMs = performance.now() + START_MS
  while (performance.now() < giveUpAtMs && !(await isOpen(port))) await setTimeout(CHECK_EVERY_MS)
}

function isOpen(port: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const socket = connect(port, '127.0.0.1', () => resolve(true)).on('error', () => resolve(false))
  return promise.finally(() => socket.destroy())
}

async function buildApps(sourceDigest: string): Promise<void> {
  const [{ bundleApp }, { writeReference }] = await Promise.all([
    import('./bundle/bundle-app.ts'),
    import('./reference/write-reference.ts'),
  ])
  await promisify(execFile)(process.execPath, [join(root, 'tools/client/generate-client.ts'), '--if-stale'])
  const built = (await Promise.all([bundleApp('console'), bundleApp('pay'), writeReference(root)])).flat()
  const compressed = await Promise.all(built.filter(({ path }) => path.includes('/assets/')).map(compress))
  const all = [...built, ...compressed.flat()]
  await Promise.all(all.map(({ path, body }) => place(join(dist, path), body)))
  const manifest: Manifest = {
    sources: sourceDigest,
    files: Object.fromEntries(all.map(({ path, body }) => [path, digestOf(body)])),
  }
  await place(manifestPath, JSON.stringify(manifest))
  const kept = new Set(['manifest.json', ...all.map(({ path }) => path)])
  // Another build beside this one writes its files under names of its own first.
  const left = (await filesBelow(dist)).filter((path) => !kept.has(path) && !path.endsWith('.tmp'))
  await Promise.all(left.map((path) => rm(join(dist, path), { force: true })))
}

/** The same file compressed as small as it gets, in files beside it. */
async function compress({ path, body }: BuiltFile): Promise<readonly BuiltFile[]> {
  const [gzipped, br] = await Promise.all([promisify(gzip)(body, { level: 9 }), promisify(brotliCompress)(body)])
  return [
    { path: `${path}.gz`, body: gzipped },
    { path: `${path}.br`, body: br },
  ]
}

/** Writes a file that is never seen half written. */
async function place(path: string, body: Uint8Array | string): Promise<void> {
  const whole = `${path}.${process.pid}.tmp`
  await mkdir(dirname(path), { recursive: true })
  await writeFile(whole, body)
  await rename(whole, path)
}

async function readManifest(): Promise<Manifest | undefined> {
  const text = await readFile(manifestPath, 'utf8').catch(() => undefined)
  return text === undefined ? undefined : (JSON.parse(text) as Manifest)
}

async function filesBelow(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) =>
      join(entry.parentPath, entry.name)
        .slice(folder.length + 1)
        .replaceAll('\\', '/'),
    )
}
