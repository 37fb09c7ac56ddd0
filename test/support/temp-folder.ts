import { mkdtemp, statfs } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const MEMORY = '/dev/shm'
const ENOUGH_BYTES = 2 * 1024 ** 3

/**
 * Makes a folder for the files of a test, in memory when there is space: copying a database takes 10 ms there, and up to 110 on a slow
 * disk. The caller removes it.
 */
export async function makeTempFolder(name: string): Promise<string> {
  const memory = await statfs(MEMORY).catch(() => undefined)
  const isLarge = memory !== undefined && memory.bavail * memory.bsize > ENOUGH_BYTES
  return mkdtemp(join(isLarge ? MEMORY : tmpdir(), `waybill-${name}-`))
}
