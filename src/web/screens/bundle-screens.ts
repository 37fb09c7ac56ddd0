import { basename, join } from 'node:path'
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
/** Bundles the console and the page to pay on. esbuild works in a process of its own, so calls do not wait. */
export async function bundleScreens(): Promise<Bundle> {
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
