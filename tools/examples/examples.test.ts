import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { compileProtos } from '../../test/support/compile-protos.ts'
import { root } from '../run-command.ts'

const folder = mkdtempSync(join(tmpdir(), 'waybill-protos-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe('protos:export', () => {
  it('writes protos that compile alone and hold the details of errors', () => {
    const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
    const [, ...command] = scripts['protos:export'].split(' ')
    execFileSync(command[0], [...command.slice(1), folder], { cwd: root })
    const registry = compileProtos(folder)
    const ours = readdirSync(join(root, 'proto/payments/v1')).map((name) => `payments/v1/${name}`)
    for (const file of [...ours, 'google/rpc/error_details.proto', 'buf/validate/validate.proto']) {
      expect(registry.getFile(file)?.name).toBe(file.replace(/\.proto$/, ''))
    }
  })
})

describe('the guide for generated clients', () => {
  const guide = readFileSync(join(root, 'docs/guides/generate-a-client.md'), 'utf8')

  it('names every example, and each has a script that runs it', () => {
    const entries = readdirSync(join(root, 'examples'), { withFileTypes: true })
    // those of one file need no generated client
    for (const { name } of entries.filter((entry) => entry.isDirectory())) {
      expect(guide).toContain(`examples/${name}`)
      expect(existsSync(join(root, 'examples', name, 'run.sh'))).toBe(true)
    }
  })
})
