import { spawnSync } from 'node:child_process'
import { chmodSync, cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'

let root: string
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'waybill-with-node-'))
  mkdirSync(join(root, 'tools'))
  mkdirSync(join(root, 'bin'))
  cpSync(join(import.meta.dirname, 'with-node'), join(root, 'tools/with-node'))
})
afterAll(() => rmSync(root, { recursive: true }))

/** Runs a command where npm has installed no Node, and another says that it has this version. */
function runWith(version: string) {
  const node = join(root, 'bin/node')
  writeFileSync(node, `#!/bin/sh\necho ${version}\n`)
  chmodSync(node, 0o755)
  const env = { PATH: `${join(root, 'bin')}:/usr/bin:/bin` }
  const { status, stdout, stderr } = spawnSync(join(root, 'tools/with-node'), ['echo', 'ran'], {
    env,
    encoding: 'utf8',
  })
  return { status, stdout, stderr }
}

it.each(['v24.0.0', 'v26.10.0', 'v30.1.0'])('runs with Node %s', (version) => {
  expect(runWith(version)).toEqual({ status: 0, stdout: 'ran\n', stderr: '' })
})

it.each(['v20.20.0', 'v22.15.1', ''])('says in a sentence what is missing with Node "%s"', (version) => {
  const { status, stdout, stderr } = runWith(version)
  expect([status, stdout]).toEqual([2, ''])
  expect(stderr).toMatch(/^Waybill needs Node 24 or newer: .*npm ci.*\n$/)
})
