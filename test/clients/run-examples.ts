import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'

const ROOT = resolve(import.meta.dirname, '../..')
const CLIENT = pathToFileURL(join(ROOT, 'clients/typescript/src/public.ts')).href

/**
 * Runs the examples of a document, its blocks marked `js`, as one program from top to bottom.
 *
 * @param path - from the project's folder
 * @param scope - the names that the examples take for given
 */
export async function runExamples(path: string, scope: Readonly<Record<string, unknown>>): Promise<void> {
  const blocks = [...readFileSync(join(ROOT, path), 'utf8').matchAll(/^```js\n(.*?)^```$/gms)].map(([, code]) => code)
  if (blocks.length === 0) throw new Error(`${path} has no example`)
  const lines = blocks.join('\n').split('\n')
  const isImport = (line: string) => line.startsWith('import ')
  const imports = lines.filter(isImport).join('\n').replaceAll("'@waybill/client'", `'${CLIENT}'`)
  const body = lines.filter((line) => !isImport(line)).join('\n')
  const source = `${imports}\nexport const run = async ({ ${Object.keys(scope).join(', ')} }) => {\n${body}\n}\n`
  // Inside the project, where the packages of the examples are found.
  const folder = join(ROOT, 'node_modules/.cache/waybill-examples')
  mkdirSync(folder, { recursive: true })
  const file = join(folder, `${path.replaceAll(/\W/g, '-')}-${process.pid}.mjs`)
  writeFileSync(file, source)
  try {
    const { run } = (await import(/* @vite-ignore */ pathToFileURL(file).href)) as {
      run: (scope: object) => Promise<void>
    }
    await run(scope)
  } finally {
    rmSync(file)
  }
}
