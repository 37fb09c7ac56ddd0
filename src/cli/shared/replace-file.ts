import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { lstat, open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Writable } from 'node:stream'
import { finished } from 'node:stream/promises'
import { UsageError } from './command.ts'

/**
 * Only a regular file may be replaced: renaming onto a folder fails at the very end, and a device or a link would be lost.
 *
 * @param name - how the command line names the file: `--output`
 * @param otherwise - what else can be done: `, or leave it out`
 * @returns whether the file exists
 * @throws UsageError
 */
export async function refuseOtherThanFile(name: string, target: string, otherwise = ''): Promise<boolean> {
  const found = await lstat(target).catch(() => undefined)
  if (found === undefined || found.isFile()) return found !== undefined
  const what = found.isSymbolicLink() ? 'a symbolic link' : 'not a regular file'
  throw new UsageError(`${name} is ${target}, which is ${what}: name a file${otherwise}`)
}

/**
 * Writes a new file beside the target, which is renamed to it once it is complete and on the disk. Only its owner can read it, whatever the
 * mode of the file that it replaces. Its random name keeps others from placing a link there first. A failure leaves no file.
 */
export async function replaceFile<T>(target: string, write: (out: Writable) => Promise<T>): Promise<T> {
  const part = `${target}.${randomUUID()}.part`
  const stream = createWriteStream(part, { flags: 'wx', mode: 0o600, flush: true })
  try {
    await once(stream, 'open')
    // An error of the stream is thrown by the next write.
    stream.on('error', () => {})
    const result = await write(stream)
    stream.end()
    await finished(stream)
    await rename(part, target)
    await syncFolder(dirname(target))
    return result
  } catch (error) {
    stream.destroy()
    await rm(part, { force: true })
    throw explainFullDisk(error, target)
  }
}

/** Makes the new name last through a power cut. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}

const FULL = new Set(['ENOSPC', 'EDQUOT', 'EFBIG'])

function explainFullDisk(error: unknown, target: string): unknown {
  const { code } = error as NodeJS.ErrnoException
  if (!FULL.has(code ?? '')) return error
  return new Error(`${target} was not written: the disk is full. Free some space, or name a file on another disk`, {
    cause: error,
  })
}
