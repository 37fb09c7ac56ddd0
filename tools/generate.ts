/**
 * Generates code from proto/ and proto_vendor/ with buf and the local plugins of buf.gen.yaml, and removes files that are no longer
 * generated. Beside it stand the comments of proto/, of which the description of the API is made. The same protos give the same bytes.
 *
 *   npm run generate             writes gen/
 *   npm run generate -- DIR      writes it into DIR instead, to compare (tools/check.ts does)
 */
import { execFileSync } from 'node:child_process'
import { rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { printComments, readProtoComments } from './proto-comments.ts'

const root = resolve(import.meta.dirname, '..')
const target = resolve(process.argv[2] ?? root)

rmSync(join(target, 'gen'), { recursive: true, force: true })
execFileSync('buf', ['generate', '--output', target], { cwd: root, stdio: 'inherit' })

const { js, dts } = printComments(readProtoComments(root))
writeFileSync(join(target, 'gen/payments/v1/comments.js'), js)
writeFileSync(join(target, 'gen/payments/v1/comments.d.ts'), dts)
