/** The code of an earlier commit, to run beside this one. */
import { execFile } from 'node:child_process'
import { mkdir, symlink } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'

const ROOT = resolve(import.meta.dirname, '../..')
const run = promisify(execFile)

/** The last commit whose schema ends with 0016 and whose processes refuse every step that they do not know. */
export const RELEASE_BEFORE = '1362a8aa3d0ae55ff3c22a93411950915511d578'

/** @returns why the code of the release before cannot be had here; undefined when it can */
export async function whyNoRelease(commit: string): Promise<string | undefined> {
  try {
    await run('git', ['-C', ROOT, 'cat-file', '-e', `${commit}^{commit}`])
    return undefined
  } catch (error) {
    return `git does not have the commit ${commit.slice(0, 7)}: ${(error as Error).message.trim()}`
  }
}

/** Writes the code of a commit into a folder, beside the packages of this one. */
export async function unpackRelease(commit: string, folder: string): Promise<void> {
  await mkdir(folder, { recursive: true })
  const archive = join(folder, 'release.tar')
  await run('git', [
    '-C',
    ROOT,
    'archive',
    '-o',
    archive,
    commit,
    'src',
    'gen',
    'tools',
    'package.json',
    'chains',
    'proto',
  ])
  await run('tar', ['-xf', archive, '-C', folder])
  await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
}
