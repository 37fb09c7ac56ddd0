/**
 * Generates code from proto/ and proto_vendor/ with buf and the local plugins of buf.gen.yaml, and removes files that are no longer
 * generated. Beside it stand the comments of proto/, of which the description of the API is made. The same protos give the same bytes.
 *
 *   npm run generate             writes gen/ and clients/typescript/gen/
 *   npm run generate -- DIR      writes them into DIR instead, to compare (tools/check.ts does)
 */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { writeClientImage } from './client/client-image.ts'
import { printComments, readProtoComments } from './proto-comments.ts'

const root = resolve(import.meta.dirname, '..')
const target = resolve(process.argv[2] ?? root)

rmSync(join(target, 'gen'), { recursive: true, force: true })
execFileSync('buf', ['generate', '--output', target], { cwd: root, stdio: 'inherit' })

const { js, dts } = printComments(readProtoComments(root))
writeFileSync(join(target, 'gen/payments/v1/comments.js'), js)
writeFileSync(join(target, 'gen/payments/v1/comments.d.ts'), dts)

const temporary = mkdtempSync(join(tmpdir(), 'waybill-image-'))
try {
  const image = join(temporary, 'client.binpb')
  writeClientImage(root, image)
  rmSync(join(target, 'clients/typescript/gen'), { recursive: true, force: true })
  const template = ['--template', 'clients/typescript/buf.gen.yaml']
  execFileSync('buf', ['generate', image, ...template, '--output', target], { cwd: root, stdio: 'inherit' })
} finally {
  rmSync(temporary, { recursive: true, force: true })
}
