import { readdir, readFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { build, type Metafile } from 'esbuild'
import { type BuiltFile, digestOf } from './built-file.ts'

type AppName = 'console' | 'pay'

const root = join(import.meta.dirname, '../..')
const titles: Readonly<Record<AppName, string>> = { console: 'Waybill', pay: 'Pay' }

/** Bundles an app: its page, scripts, styles, and the licences of the packages in them. */
export async function bundleApp(name: AppName): Promise<readonly BuiltFile[]> {
  const entry = `apps/${name}/${name}`
  const { files, licences, script, style, preload } = await bundleAssets(name, entry, 'tsx')
  const outlineStyle = OUTLINE + (name === 'console' ? CONSOLE_OUTLINE : '')
  const page = pageOf({ title: titles[name], script, style, preload, licences, body: outlines[name], outlineStyle })
  return [{ path: `${name}.html`, body: page }, ...files]
}

/**
 * Bundles a script and the styles beside it.
 *
 * @param name - the folder in which they are served
 * @param entry - their path from the project's root, without its ending
 * @returns their files, and the paths at which they are served
 */
export async function bundleAssets(name: string, entry: string, type: 'tsx' | 'js') {
  const entries = [`${entry}.${type}`, `${entry}.css`] as const
  const { outputFiles, metafile } = await build({
    absWorkingDir: root,
    entryPoints: [...entries],
    bundle: true,
    minify: true,
    splitting: true,
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
  })
  const folder = `${name}/assets`
  const notices = await noticesOf(metafile)
  const licences = { path: `${folder}/licenses-${digestOf(notices)}.txt`, body: notices }
  const outputOf = (path: string) =>
    Object.entries(metafile.outputs).find(([, { entryPoint }]) => entryPoint === path)?.[0] ?? ''
  const urlOf = (path: string) => `/${folder}/${basename(path)}`
  const script = outputOf(entries[0])
  return {
    files: [
      licences,
      ...outputFiles.map(({ path, contents }) => ({ path: `${folder}/${basename(path)}`, body: contents })),
    ],
    licences: `/${licences.path}`,
    script: urlOf(script),
    style: urlOf(outputOf(entries[1])),
    preload: importsOf(script, metafile.outputs).map(urlOf),
  }
}

/** Scripts that the first one imports statically, so that a browser loads all at once. */
function importsOf(path: string, outputs: Metafile['outputs'], seen = new Set<string>()): string[] {
  for (const imported of outputs[path]?.imports ?? []) {
    if (imported.kind !== 'import-statement' || seen.has(imported.path)) continue
    seen.add(imported.path)
    importsOf(imported.path, outputs, seen)
  }
  return [...seen]
}

/** The licence texts of the packages that are in a bundle, as they ask to be kept beside it. */
async function noticesOf({ inputs }: Metafile): Promise<string> {
  const folders = Object.keys(inputs).flatMap((path) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0] ?? [])
  const notices = [...new Set(folders)].toSorted().map(async (folder) => {
    const { name, version, license } = JSON.parse(await readFile(join(root, folder, 'package.json'), 'utf8')) as Record<
      'name' | 'version' | 'license',
      string
    >
    const file = (await readdir(join(root, folder))).find((each) => /^licen[cs]e/i.test(each))
    const text = file === undefined ? '' : `\n\n${(await readFile(join(root, folder, file), 'utf8')).trim()}`
    return `${name} ${version} (${license})${text}\n`
  })
  return (await Promise.all(notices)).join(`\n${'-'.repeat(80)}\n\n`)
}

/** The outline of a page, which stands there while a slow line brings its script. */
const outlineOf = (lines: readonly string[], name = '') =>
  `<main aria-busy="true">${name}${lines.map((size) => `<span class="bone ${size}"></span>`).join('')}</main>`

const outlines: Readonly<Record<AppName, string>> = {
  console: outlineOf(['', ...Array.from({ length: 9 }, () => 'wide')], '<b class="outline-name">Waybill</b>'),
  pay: outlineOf(['', 'sum', '', 'high', 'high', 'high']),
}

/**
 * The styles of an outline. They stand in the page itself, and the sheet of all styles after the outline, so that nothing else has to come before a browser
 * paints: on a slow line each file takes seconds. The policy allows them by their hash.
 */
const OUTLINE =
  ':root{color-scheme:light dark}body{margin:0;background:light-dark(#fff,#10141a)}.bone{display:block;height:1.25rem;width:14rem;max-width:100%;margin:.5rem auto;border-radius:6px;background:light-dark(#f1f3f6,#1b222c)}.bone.sum{height:2.5rem}.bone.high{width:min(29rem,90%);height:4rem}'

const CONSOLE_OUTLINE =
  '.bone.wide{width:90%}.outline-name{display:block;margin:.75rem 1.25rem;font:600 1rem/1.5 system-ui,sans-serif}'

/** A mark of three lines that meet, in one colour that shows on light and dark. */
const ICON =
  "data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'><path fill='none' stroke='%233b82f6' stroke-width='2' stroke-linecap='round' d='M2 3h4l4 5h4M2 13h4l4-5M2 8h8'/></svg>"

/** react-aria adds a style element of this id where there is none, which the policy forbids; its one rule stands in the console's style. */
const ARIA_STYLE = 'react-aria-pressable-style'

interface PageParts {
  readonly title: string
  readonly script: string
  readonly style: string
  readonly preload: readonly string[]
  readonly licences: string
  /** What stands in the page until its script has run. */
  readonly body: string
  readonly outlineStyle: string
}

const pageOf = ({ title, script, style, preload, licences, body, outlineStyle }: PageParts) => `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>${title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">
<link rel="icon" href="${ICON}"><link rel="license" href="${licences}">
${preload.map((part) => `<link rel="modulepreload" href="${part}">`).join('')}<script type="module" src="${script}"></script>
<style>${outlineStyle}</style></head>
<body><div id="root">${body}</div><link rel="stylesheet" id="${ARIA_STYLE}" href="${style}"><noscript>This page needs JavaScript.</noscript></body></html>
`
