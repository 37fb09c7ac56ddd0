import { hash } from 'node:crypto'
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { basename, join, relative } from 'node:path'
import { promisify } from 'node:util'
import { brotliCompress, gzip } from 'node:zlib'
import { withoutJsonCodec } from './without-json-codec.ts'

/** A file of a bundle, whose name holds a hash of its content. */
export interface BundledFile {
  /** `console-X2J4.js` */
  readonly name: string
  readonly body: Uint8Array
  /** The body, compressed as small as it gets. */
  readonly compressed: Readonly<Record<'gzip' | 'br', Uint8Array>>
}

/** What a page of a screen loads. */
export interface Screen {
  readonly script: string
  readonly style: string
  /** Scripts that the first imports statically, so that a browser may load all at once. */
  readonly preload: readonly string[]
}

export type ScreenName = 'console' | 'pay'

export interface Bundle {
  readonly files: ReadonlyMap<string, BundledFile>
  readonly screens: Readonly<Record<ScreenName, Screen>>
}

const root = join(import.meta.dirname, '../../..')
/** Whatever changes the bundle. */
const folders = ['src/web', 'clients/typescript/src', 'clients/typescript/gen']
const settings = ['package-lock.json', 'tsconfig.json']

/** Files that an older bundle may be kept in. */
const MANIFEST = 'screens.json'

/**
 * Bundles the console and the page to pay on, or reads the bundle that an earlier process made of the same sources. esbuild works in a process of
 * its own, so calls do not wait.
 *
 * @param cache - a folder that only the process's user can write to; undefined keeps nothing
 */
export async function bundleScreens(cache: string | undefined): Promise<Bundle> {
  const folder = cache === undefined ? undefined : join(cache, `screens-${await digestSources()}`)
  if (folder !== undefined) {
    const kept = await readBundle(folder).catch(() => undefined)
    if (kept !== undefined) return kept
  }
  const bundle = await build()
  // A folder that cannot be written costs the next start a second.
  if (folder !== undefined) await keepBundle(folder, bundle).catch(() => undefined)
  return bundle
}

async function digestSources(): Promise<string> {
  const found = await Promise.all(folders.map(listFiles))
  const paths = [...found.flat(), ...settings].toSorted()
  const texts = await Promise.all(paths.map((path) => readFile(join(root, path))))
  const parts = paths.map((path, index) => `${path} ${hash('sha256', texts[index]!)}`)
  return hash('sha256', parts.join('\n')).slice(0, 20)
}

async function listFiles(folder: string): Promise<string[]> {
  const entries = await readdir(join(root, folder), { recursive: true, withFileTypes: true })
  return entries.filter((entry) => entry.isFile()).map((entry) => relative(root, join(entry.parentPath, entry.name)))
}

async function build(): Promise<Bundle> {
  const esbuild = await import('esbuild')
  const options = {
    absWorkingDir: root,
    bundle: true,
    minify: true,
    format: 'esm',
    target: 'es2022',
    jsx: 'automatic',
    outdir: join(root, 'out'),
    entryNames: '[name]-[hash]',
    chunkNames: 'part-[hash]',
    write: false,
    metafile: true,
    legalComments: 'none',
    logLevel: 'silent',
    define: { 'process.env.NODE_ENV': '"production"' },
    tsconfig: join(root, 'tsconfig.json'),
  } as const
  try {
    // Apart, so that the small page to pay on loads one script and shares nothing with the console.
    const [console, pay] = await Promise.all([
      esbuild.build({ ...options, splitting: true, entryPoints: entriesOf('console') }),
      esbuild.build({ ...options, entryPoints: entriesOf('pay'), plugins: [withoutJsonCodec] }),
    ])
    const files = await Promise.all([...console.outputFiles, ...pay.outputFiles].map(compressFile))
    return {
      files: new Map(files.map((file) => [file.name, file])),
      screens: { console: screenOf('console', console.metafile), pay: screenOf('pay', pay.metafile) },
    }
  } finally {
    await esbuild.stop()
  }
}

const entriesOf = (name: ScreenName) => [`src/web/${name}/${name}.tsx`, `src/web/${name}/${name}.css`]

async function compressFile({ path, contents }: { path: string; contents: Uint8Array }): Promise<BundledFile> {
  const [gzipped, br] = await Promise.all([
    promisify(gzip)(contents, { level: 9 }),
    promisify(brotliCompress)(contents),
  ])
  return { name: basename(path), body: contents, compressed: { gzip: gzipped, br } }
}

interface Outputs {
  readonly outputs: Readonly<
    Record<string, { readonly entryPoint?: string; readonly imports: readonly { path: string; kind: string }[] }>
  >
}

function screenOf(name: ScreenName, { outputs }: Outputs): Screen {
  const [script = '', style = ''] = entriesOf(name).map((entry) =>
    Object.keys(outputs).find((path) => outputs[path]!.entryPoint === entry),
  )
  return {
    script: basename(script),
    style: basename(style),
    preload: importsOf(script, outputs).map((path) => basename(path)),
  }
}

function importsOf(path: string, outputs: Outputs['outputs'], seen = new Set<string>()): string[] {
  for (const imported of outputs[path]!.imports) {
    if (imported.kind !== 'import-statement' || seen.has(imported.path)) continue
    seen.add(imported.path)
    importsOf(imported.path, outputs, seen)
  }
  return [...seen]
}

interface Manifest {
  readonly names: readonly string[]
  readonly screens: Bundle['screens']
}

async function readBundle(folder: string): Promise<Bundle> {
  const { names, screens } = JSON.parse(await readFile(join(folder, MANIFEST), 'utf8')) as Manifest
  const files = await Promise.all(
    names.map(async (name): Promise<BundledFile> => {
      const [body, gzipped, br] = await Promise.all(['', '.gz', '.br'].map((end) => readFile(join(folder, name + end))))
      return { name, body: body!, compressed: { gzip: gzipped!, br: br! } }
    }),
  )
  return { files: new Map(files.map((file) => [file.name, file])), screens }
}

/** Writes a bundle beside its place and moves it there, since another process may read meanwhile. Older bundles go. */
async function keepBundle(folder: string, { files, screens }: Bundle): Promise<void> {
  const cache = join(folder, '..')
  const fresh = `${folder}.${process.pid}`
  await mkdir(fresh, { recursive: true, mode: 0o700 })
  const manifest: Manifest = { names: [...files.keys()], screens }
  await Promise.all([
    ...[...files.values()].flatMap(({ name, body, compressed }) => [
      writeFile(join(fresh, name), body),
      writeFile(join(fresh, `${name}.gz`), compressed.gzip),
      writeFile(join(fresh, `${name}.br`), compressed.br),
    ]),
    writeFile(join(fresh, MANIFEST), JSON.stringify(manifest)),
  ])
  const older = (await readdir(cache)).filter((name) => name.startsWith('screens-') && !fresh.endsWith(name))
  await Promise.all(older.map((name) => rm(join(cache, name), { recursive: true, force: true })))
  await rename(fresh, folder)
}
