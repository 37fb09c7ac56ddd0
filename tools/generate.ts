/**
 * Generates code from proto/ and proto_vendor/ with buf and the local plugins of buf.gen.yaml, and removes files that are no longer
 * generated. The same protos give the same bytes.
 *
 *   npm run generate             writes gen/
 *   npm run generate -- DIR      writes DIR/gen/ instead, to compare (tools/check.ts does)
 */
import { execFileSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { join, resolve } from 'node:path'

const root = resolve(import.meta.dirname, '..')
const target = resolve(process.argv[2] ?? root)

rmSync(join(target, 'gen'), { recursive: true, force: true })
execFileSync('buf', ['generate', '--output', target], { cwd: root, stdio: 'inherit' })
