import { mkdtemp, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { stampDataFolder } from '../shared/stamp-data-folder.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waybill-stamp-'))
})
afterAll(() => rm(folder, { recursive: true }))

it.each([
  ['demo', 'service'],
  ['service', 'demo'],
] as const)('keeps a folder of a %s from becoming one of a %s', async (use, other) => {
  const dataDir = join(folder, use)
  await stampDataFolder(dataDir, use)
  await stampDataFolder(dataDir, use)
  await expect(stampDataFolder(dataDir, other)).rejects.toThrow(dataDir)
  expect((await stat(dataDir)).mode & 0o777).toBe(0o700)
})
