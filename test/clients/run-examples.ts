import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'

const ROOT = resolve(import.meta.dirname, '../..')
const CLIENT = pathToFileURL(join(ROOT, 'clients/typescript/src/public.ts')).href

/**
 * The programs of a document by file: its blocks marked `ts`, those of one file joined from top to bottom. The file stands after the mark,
 * `ts page.ts`; what has none is `program.ts`.
 *
 * @param path - from the project's folder
 */
export function programsOf(path: string): ReadonlyMap<string, string> {
  const programs = new Map<string, string>()
  const blocks = readFileSync(join(ROOT, path), 'utf8').matchAll(/^```ts(?: (\S+))?\n(.*?)^```$/gms)
  for (const [, file = 'program.ts', code] of blocks) programs.set(file, `${programs.get(file) ?? ''}${code}\n`)
  return programs
}

/**
 * Runs the programs of a document, each as a whole, in the order in which they begin.
 *
 * @param scope - what the programs take for given, such as what they declare
 */
export async function runExamples(path: string, scope: Readonly<Record<string, unknown>>): Promise<void> {
  const programs = programsOf(path)
  if (programs.size === 0) throw new Error(`${path} has no example`)
  for (const [file, program] of programs) {
    const lines = stripTypeScriptTypes(program).split('\n')
    const isImport = (line: string) => line.startsWith('import ')
    const imports = lines.filter(isImport).join('\n').replaceAll("'@waybill/client'", `'${CLIENT}'`)
    const body = lines.filter((line) => !isImport(line)).join('\n')
    const source = `${imports}\nexport const run = async ({ ${Object.keys(scope).join(', ')} }) => {\n${body}\n}\n`
    await runProgram(`${path} ${file}`, source, scope)
  }
}

async function runProgram(name: string, source: string, scope: object): Promise<void> {
  // Inside the project, where the packages of the examples are found.
  const folder = join(ROOT, 'node_modules/.cache/waybill-examples')
  mkdirSync(folder, { recursive: true })
  const file = join(folder, `${name.replaceAll(/\W/g, '-')}-${process.pid}.mjs`)
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
