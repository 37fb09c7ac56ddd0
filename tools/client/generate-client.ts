/**
 * Generates the code of the published client from proto/ into clients/typescript/gen, which is not in git.
 *
 *   node tools/client/generate-client.ts              generates
 *   node tools/client/generate-client.ts --if-stale   generates where it is missing or older than proto/
 */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { writeClientImage } from './client-image.ts'

const root = resolve(import.meta.dirname, '../..')
const gen = join(root, 'clients/typescript/gen')
/** Holds the digest of what the code was generated from. */
const mark = join(gen, '.sources')

/** What the code is made of. */
const SOURCES = ['proto/**/*.proto', 'proto_vendor/**/*.proto', 'tools/client/*.ts', 'clients/typescript/buf.gen.yaml']

if (import.meta.main) {
  const digest = digestOfSources()
  if (!process.argv.includes('--if-stale') || readMark() !== digest) generate(digest)
}

function generate(digest: string): void {
  const temporary = mkdtempSync(join(tmpdir(), 'waybill-image-'))
  try {
    const image = join(temporary, 'client.binpb')
    writeClientImage(root, image)
    rmSync(gen, { recursive: true, force: true })
    const template = ['--template', 'clients/typescript/buf.gen.yaml']
    execFileSync('buf', ['generate', image, ...template], { cwd: root, stdio: 'inherit' })
    writeFileSync(mark, digest)
  } finally {
    rmSync(temporary, { recursive: true, force: true })
  }
}

function digestOfSources(): string {
  const digest = createHash('sha256')
  for (const path of [...globSync(SOURCES, { cwd: root }).toSorted(), 'package-lock.json']) {
    digest.update(`${path}\n`).update(readFileSync(join(root, path)))
  }
  return digest.digest('hex')
}

function readMark(): string | undefined {
  try {
    return readFileSync(mark, 'utf8')
  } catch {
    return undefined
  }
}
