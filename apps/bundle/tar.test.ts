import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { packTarGz } from './tar.ts'

it('packs files as tar unpacks them, and the same ones into the same bytes', () => {
  const files = [
    { path: 'a/empty.txt', body: '' },
    { path: 'a/b/block.bin', body: new Uint8Array(512).fill(7) },
    { path: 'ä.txt', body: 'ein Wort' },
  ]
  const packed = packTarGz(files)
  const folder = mkdtempSync(join(tmpdir(), 'waybill-tar-'))
  try {
    execFileSync('tar', ['-xzf', '-', '-C', folder], { input: packed })
    const unpacked = files.map(({ path }) => readFileSync(join(folder, path)))
    expect(unpacked).toEqual(files.map(({ body }) => Buffer.from(body)))
  } finally {
    rmSync(folder, { recursive: true })
  }
  expect(packTarGz(files)).toEqual(packed)
})
