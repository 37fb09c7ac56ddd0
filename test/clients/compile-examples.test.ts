import { globSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { root, runCommand } from '../../tools/run-command.ts'
import { makeTempFolder } from '../support/temp-folder.ts'
import { programsOf } from './run-examples.ts'

// The examples of all documents, compiled as their readers compile them: in a strict project of their own that has installed the packed client.

const documents = [...globSync('docs/**/*.md', { cwd: root }), 'README.md', 'clients/typescript/README.md'].toSorted()

const STRICT = {
  strict: true,
  noUncheckedIndexedAccess: true,
  exactOptionalPropertyTypes: true,
  verbatimModuleSyntax: true,
  isolatedModules: true,
  moduleDetection: 'force',
  noUncheckedSideEffectImports: true,
  skipLibCheck: true,
  noEmit: true,
  target: 'es2024',
}
const PROJECTS = {
  server: { module: 'nodenext', lib: ['es2024'], types: ['node'] },
  page: {
    module: 'esnext',
    moduleResolution: 'bundler',
    lib: ['es2024', 'dom', 'dom.iterable', 'dom.asynciterable'],
    types: [],
  },
}
type Project = keyof typeof PROJECTS

/** A caller's switch over the reasons of an error. */
const REASONS = `
import type { WaybillCallError } from '@waybill/client'

export function adviceFor({ reason, fieldViolations }: WaybillCallError): string {
  // @ts-expect-error: a typo
  if (fieldViolations.some((each) => each.reason === 'INVALID_ADRESS')) return ''
  switch (reason) {
    case 'REQUEST_NOT_FOUND':
    case 'NETWORK':
      return reason
    // @ts-expect-error: a typo
    case 'REQUEST_NOTFOUND':
      return ''
    default:
      return ''
  }
}
export const isOpen: string extends WaybillCallError['reason'] ? true : false = false
`

let folder: string
beforeAll(async () => {
  folder = await makeTempFolder('compile-examples')
  await installClient()
  const files: Record<Project, string[]> = { server: [], page: [] }
  const write = (path: string, program: string) => {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), program)
    files[path.endsWith('page.ts') ? 'page' : 'server'].push(path)
  }
  for (const document of documents) {
    for (const [file, program] of programsOf(document)) write(join(document.replace(/\.md$/, ''), file), program)
  }
  write('reasons.ts', REASONS)
  for (const [name, settings] of Object.entries(PROJECTS)) {
    const project = { compilerOptions: { ...STRICT, ...settings }, files: files[name as Project] }
    writeFileSync(join(folder, `${name}.json`), JSON.stringify(project))
  }
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Installs the packed client, and beside it the packages that it and the examples import, without a registry. */
async function installClient(): Promise<void> {
  const modules = join(folder, 'node_modules')
  const client = join(modules, '@waybill/client')
  mkdirSync(client, { recursive: true })
  writeFileSync(join(folder, 'package.json'), '{ "private": true, "type": "module" }')
  await mustRun('tsc', '--project', 'clients/typescript/tsconfig.json')
  await mustRun('npm', 'pack', '--ignore-scripts', '--workspace', '@waybill/client', '--pack-destination', folder)
  const [tarball = ''] = globSync('waybill-client-*.tgz', { cwd: folder })
  await mustRun('tar', '--extract', '--file', join(folder, tarball), '--directory', client, '--strip-components', '1')
  const { dependencies } = JSON.parse(readFileSync(join(client, 'package.json'), 'utf8')) as { dependencies: object }
  for (const name of [...Object.keys(dependencies), 'viem', 'ethers', '@types/node']) {
    mkdirSync(dirname(join(modules, name)), { recursive: true })
    symlinkSync(join(root, 'node_modules', name), join(modules, name))
  }
}

async function mustRun(file: string, ...args: string[]): Promise<void> {
  const { outcome, output } = await runCommand(file, args)
  if (outcome !== 'ok') throw new Error(output)
}

it.each(Object.keys(PROJECTS))('examples of a %s compile, and a reason with a typo does not', async (project) => {
  expect(await runCommand('tsc', ['--project', join(folder, `${project}.json`)])).toEqual({ outcome: 'ok', output: '' })
})

it('every example in a language of JavaScript is marked as one that is compiled', () => {
  const marked = documents.map((path) => [path, readFileSync(join(root, path), 'utf8')] as const)
  const others = marked.filter(([, text]) => /^```(?:m?jsx?|javascript|m?tsx|typescript)\b/m.test(text))
  expect(others.map(([path]) => path)).toEqual([])
})
