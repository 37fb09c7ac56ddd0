import { hash } from 'node:crypto'
import { readFile, stat } from 'node:fs/promises'
import { extname, join } from 'node:path'
import type { OpenFile, OpenFiles } from './open-files.ts'

export interface BuiltFilesOptions {
  /** The folder that `npm run build` writes. */
  readonly folder: string
  /** The origins of the pages that may frame the checkout page: those of a publishable key. Undefined if there is no such key. */
  readonly originsOfKey: (key: string) => Promise<readonly string[] | undefined>
  /** The key that the console of a demo begins with. */
  readonly demoKey: string | undefined
}

const CONSOLE = 'console.html'
const CHECKOUT = 'pay.html'

/** A build: the digests of its files by their paths in the folder, and what was read of them. */
interface Build {
  readonly writtenMs: number
  readonly digests: Readonly<Record<string, string>>
  readonly files: Map<string, Promise<OpenFile>>
}

/** The console, the checkout page and the documentation, as they were built. A build that is written later is served from then on. */
export function createBuiltFiles({ folder, originsOfKey, demoKey }: BuiltFilesOptions): OpenFiles {
  const manifest = join(folder, 'manifest.json')
  let build: Build | undefined

  async function load(): Promise<Build | undefined> {
    const writtenMs = await stat(manifest).then(
      ({ mtimeMs }) => mtimeMs,
      () => undefined,
    )
    if (writtenMs === undefined || writtenMs === build?.writtenMs) return build
    const { files } = JSON.parse(await readFile(manifest, 'utf8')) as { files: Build['digests'] }
    build = { writtenMs, digests: files, files: new Map() }
    return build
  }

  async function readOpen(name: string, { digests }: Build): Promise<OpenFile> {
    const body = await readFile(join(folder, name))
    const etag = `"${digests[name]}"`
    const contentType = contentTypes[extname(name)] ?? 'text/plain; charset=utf-8'
    if (name.includes('/assets/')) {
      const [gzip, br] = await Promise.all(['gz', 'br'].map((ending) => readFile(join(folder, `${name}.${ending}`))))
      return { contentType, body, compressed: { gzip: gzip!, br: br! }, etag, isImmutable: true }
    }
    if (!name.endsWith('.html')) return { contentType, body, etag: `W/${etag}` }
    const policy = policyFor(body.toString())
    if (name !== CONSOLE || demoKey === undefined) return { contentType, body, etag: `W/${etag}`, policy }
    const page = body.toString().replace('<link', `<meta name="waybill-key" content="${demoKey}"><link`)
    return { contentType, body: page, etag: `W/"${digests[name]}-demo"`, policy }
  }

  return {
    paths: ['/console', '/docs', '/llms.txt', '/protos.tar.gz'],
    covers: (path) => nameOf(path) !== undefined,
    async read(path, query) {
      if (path.endsWith('/')) return { location: path.replace(/\/+$/, '') }
      const name = nameOf(path)
      const current = await load()
      if (current === undefined) return notBuilt
      if (name === undefined || !Object.hasOwn(current.digests, name)) return undefined
      const { files } = current
      const reading = files.get(name) ?? readOpen(name, current)
      files.set(name, reading)
      const file = await reading.catch((error: unknown) => {
        files.delete(name)
        throw error
      })
      if (name !== CHECKOUT) return file
      const key = new URLSearchParams(query).get('key')
      const framedBy = async () => (key === null ? undefined : await originsOfKey(key)) ?? []
      return { ...file, policy: async () => framed(file.policy as string, await framedBy()) }
    },
  }
}

/** `/console/payments` → `console.html`, `/docs/start` → `docs/start.html`, `/docs/start.md` → `docs/start.md` */
function nameOf(path: string): string | undefined {
  if (/^\/(?:console|pay|docs)\/assets\/[^/]+$/.test(path)) return path.slice(1)
  if (/^\/console(?:\/|$)/.test(path)) return CONSOLE
  if (/^\/pay\/[^/]+$/.test(path)) return CHECKOUT
  if (path === '/llms.txt' || path === '/protos.tar.gz') return path.slice(1)
  if (/^\/docs(?:\/|$)/.test(path)) return extname(path) === '' ? `${path.slice(1)}.html` : path.slice(1)
  return undefined
}

const contentTypes: Readonly<Record<string, string>> = {
  '.atom': 'application/atom+xml; charset=utf-8',
  '.gz': 'application/gzip',
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json',
  '.md': 'text/markdown; charset=utf-8',
}

const notBuilt = {
  notBuilt:
    'The console, the checkout page and the documentation are not built yet: `npm start` builds them beside the start, `npm run build` alone.',
}

/** Framed by nobody, nothing from another host, no inline script, and no style but that of the page as it was built. Icons of wallets are data. */
const policyFor = (page: string) =>
  [
    "default-src 'none'",
    "script-src 'self'",
    ["style-src 'self'", ...stylesOf(page)].join(' '),
    "connect-src 'self'",
    "img-src 'self' data:",
    "base-uri 'none'",
    "form-action 'none'",
    `${FRAMED_BY}'none'`,
  ].join('; ')

/** The last directive of a policy. */
const FRAMED_BY = 'frame-ancestors '

/** The same policy for a page that the pages of some origins may frame. */
function framed(policy: string, origins: readonly string[]): string {
  return origins.length === 0 ? policy : policy.replace(`${FRAMED_BY}'none'`, FRAMED_BY + origins.join(' '))
}

/** The hashes of the styles that stand in a page. */
function stylesOf(page: string): string[] {
  const styles = page.matchAll(/<style>([^<]*)<\/style>/g)
  return [...styles].map(([, text = '']) => `'sha256-${hash('sha256', text, 'base64')}'`)
}
