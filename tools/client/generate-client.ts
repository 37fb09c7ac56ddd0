/**
 * Generates the code of the published client from proto/ into clients/typescript/gen, which is not in git.
 *
 *   node tools/client/generate-client.ts              generates
 *   node tools/client/generate-client.ts --if-stale   generates where it is missing or older than proto/
 */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { digestOfFiles } from '../../apps/bundle/built-file.ts'
import { reasons } from '../../src/errors/reasons.ts'
import { writeClientImage } from './client-image.ts'

const root = resolve(import.meta.dirname, '../..')
const gen = join(root, 'clients/typescript/gen')
/** The file in `gen` that holds the digest of what the code was generated from. */
const MARK = '.sources'

/** What the code is made of. */
const SOURCES = [
  'proto{,_vendor}/**/*.proto',
  'tools/client/*.ts',
  'clients/typescript/buf.gen.yaml',
  'src/errors/**/*.ts',
  'package-lock.json',
]

if (import.meta.main) {
  const digest = digestOfFiles(root, SOURCES)
  if (!process.argv.includes('--if-stale') || readMark() !== digest) generate(digest)
}

function generate(digest: string): void {
  const temporary = mkdtempSync(join(root, 'clients/typescript/.gen-'))
  try {
    const image = join(temporary, 'client.binpb')
    writeClientImage(root, image)
    const template = ['--template', 'clients/typescript/buf.gen.yaml', '--output', temporary]
    execFileSync('buf', ['generate', image, ...template], { cwd: root, stdio: 'inherit' })
    const made = join(temporary, 'clients/typescript/gen')
    writeFileSync(join(made, 'reasons.d.ts'), reasonsType())
    writeFileSync(join(made, MARK), digest)
    // Moved whole, so that a build or a test beside this never reads half of it.
    rmSync(gen, { recursive: true, force: true })
    renameSync(made, gen)
  } finally {
    rmSync(temporary, { recursive: true, force: true })
  }
}

/** The reasons of the service's table, as a type. */
function reasonsType(): string {
  const names = Object.keys(reasons).map((name) => `'${name}'`)
  return `/** Why a call failed, a route is missing, or what to know: the reasons of the service's table. */\nexport type Reason =\n  | ${names.join('\n  | ')}\n`
}

function readMark(): string | undefined {
  try {
    return readFileSync(join(gen, MARK), 'utf8')
  } catch {
    return undefined
  }
}
