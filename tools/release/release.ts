/**
 * Makes the files of a release into release/, and publishes nothing:
 *
 *   npm run release
 *
 * The sources, of which the image is built too, are those of HEAD, so a work tree with changes is refused. So is a version without a dated section of the
 * CHANGELOG.
 */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../run-command.ts'
import { notesOf } from './notes.ts'
import { noticesOfPackages } from './notices.ts'

const folder = join(root, 'release')
const { name, version, repository } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  name: string
  version: string
  repository: { url: string }
}
const home = repository.url.replace(/^git\+|\.git$/g, '')

const run = (file: string, ...args: readonly string[]) =>
  execFileSync(file, args, { cwd: root, encoding: 'utf8', maxBuffer: 2 ** 28, stdio: ['ignore', 'pipe', 'inherit'] })

const write = (name: string, text: string | Uint8Array) => writeFileSync(join(folder, name), text)

const changed = run('git', 'status', '--porcelain')
if (changed !== '') throw new Error(`the work tree has changes; commit them first:\n${changed}`)
const notes = notesOf(readFileSync(join(root, 'CHANGELOG.md'), 'utf8'), version, home)
if (notes === undefined) throw new Error(`CHANGELOG.md has no section "## ${version} - DATE"; date it first`)

rmSync(folder, { recursive: true, force: true })
mkdirSync(folder)
write('NOTES.md', notes)
const sources = `waybill-${version}`
run(
  'git',
  'archive',
  '--format=tar.gz',
  `--prefix=${sources}/`,
  `--output=${join(folder, `${sources}.tar.gz`)}`,
  'HEAD',
)
run('npm', 'pack', '--workspace', '@waybill/client', '--pack-destination', folder)
run('node', 'apps/build.ts', '--if-stale')
write(`waybill-${version}-protos.tar.gz`, readFileSync(join(root, 'apps/dist/protos.tar.gz')))
const bill = JSON.parse(run('npm', 'sbom', '--sbom-format', 'cyclonedx', '--omit', 'dev')) as {
  metadata: { component: { name: string } }
}
// npm has the folder's name there.
bill.metadata.component.name = name
write(`waybill-${version}.cdx.json`, JSON.stringify(bill, null, 2))
write(`waybill-${version}-NOTICES.txt`, noticesOfPackages(root))
const sums = readdirSync(folder)
  .toSorted()
  .map(
    (name) =>
      `${createHash('sha256')
        .update(readFileSync(join(folder, name)))
        .digest('hex')}  ${name}\n`,
  )
write('SHA256SUMS', sums.join(''))
process.stdout.write(sums.join(''))
