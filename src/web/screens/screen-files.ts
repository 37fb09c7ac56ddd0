import { hash } from 'node:crypto'
import type { OpenFile, OpenFiles } from '../../api/http/open-files.ts'
import type { Bundle, BundledFile, Screen, ScreenName } from './bundle-screens.ts'

export interface ScreenOptions {
  /** The origins of the pages that may frame the page to pay on: those of a publishable key. Undefined if there is no such key. */
  readonly originsOfKey: (key: string) => Promise<readonly string[] | undefined>
  /** The key that the console of a demo begins with. */
  readonly demoKey: string | undefined
}

/** The screens of the process. */
export interface ScreenFiles extends OpenFiles {
  /** Bundles them before somebody asks. Never rejects. */
  readonly prepare: () => Promise<void>
}

const ASSETS = /^\/(?:console|pay)\/assets\/([^/]+)$/
const PAY = /^\/pay\/[^/]+$/

/** The console and the page to pay on, bundled when they are first asked for. */
export function createScreenFiles(options: ScreenOptions): ScreenFiles {
  let bundle: Promise<Bundle> | undefined

  const load = () => {
    bundle ??= import('./bundle-screens.ts')
      .then(({ bundleScreens }) => bundleScreens())
      .catch((error: unknown) => {
        bundle = undefined
        throw error
      })
    return bundle
  }

  return {
    paths: ['/console'],
    covers: (path) => isConsole(path) || PAY.test(path) || ASSETS.test(path),
    prepare: async () => void (await load().catch(() => undefined)),
    async read(path, query) {
      if (path === '/console/') return { location: '/console' }
      const { files, screens } = await load()
      const [, name] = ASSETS.exec(path) ?? []
      if (name !== undefined) return assetOf(files.get(name))
      if (isConsole(path)) return consolePage(screens.console, options.demoKey)
      const key = new URLSearchParams(query).get('key')
      const framedBy = async () => (key === null ? undefined : await options.originsOfKey(key)) ?? []
      return payPage(screens.pay, async () => policyFor(await framedBy()))
    },
  }
}

function assetOf(file: BundledFile | undefined): OpenFile | undefined {
  if (file === undefined) return undefined
  const { name, body, compressed } = file
  return { contentType: contentTypeOf(name), body, compressed, etag: `"${name}"`, isImmutable: true }
}

function isConsole(path: string): boolean {
  return path === '/console' || path.startsWith('/console/')
}

function contentTypeOf(name: string): string {
  return name.endsWith('.css') ? 'text/css; charset=utf-8' : 'text/javascript; charset=utf-8'
}

/** Nothing from another host and no inline script. Icons of wallets are data. */
const policyFor = (framedBy: readonly string[]) =>
  [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "connect-src 'self'",
    "img-src 'self' data:",
    "base-uri 'none'",
    "form-action 'none'",
    `frame-ancestors ${framedBy.length === 0 ? "'none'" : framedBy.join(' ')}`,
  ].join('; ')

function consolePage(screen: Screen, demoKey: string | undefined): OpenFile {
  const meta = demoKey === undefined ? '' : `<meta name="waybill-key" content="${demoKey}">`
  return pageOf({ name: 'console', title: 'Waybill', screen, meta, policy: policyFor([]) })
}

function payPage(screen: Screen, policy: () => Promise<string>): OpenFile {
  return pageOf({ name: 'pay', title: 'Pay', screen, meta: '', policy })
}

interface PageParts {
  readonly name: ScreenName
  readonly title: string
  readonly screen: Screen
  readonly meta: string
  readonly policy: NonNullable<OpenFile['policy']>
}

/** A mark of three lines that meet, in one colour that shows on light and dark. */
const ICON = `data:image/svg+xml,${encodeURIComponent('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><path fill="none" stroke="#3b82f6" stroke-width="2" stroke-linecap="round" d="M2 3h4l4 5h4M2 13h4l4-5M2 8h8"/></svg>')}`

/** react-aria adds a style element of this id where there is none, which the policy forbids; its one rule stands in the console's style. */
const ARIA_STYLE = 'react-aria-pressable-style'

function pageOf({ name, title, screen, meta, policy }: PageParts): OpenFile {
  const assets = `/${name}/assets/`
  const preload = screen.preload.map((part) => `<link rel="modulepreload" href="${assets}${part}">`).join('')
  const body = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>${title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">
${meta}<link rel="icon" href="${ICON}"><link rel="stylesheet" id="${ARIA_STYLE}" href="${assets}${screen.style}">
${preload}<script type="module" src="${assets}${screen.script}"></script></head>
<body><div id="root"></div><noscript>This page needs JavaScript.</noscript></body></html>
`
  const etag = `"${hash('sha256', body, 'base64url').slice(0, 16)}"`
  return { contentType: 'text/html; charset=utf-8', body, etag, policy }
}
