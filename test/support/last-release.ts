import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, symlink } from 'node:fs/promises'
import { join, resolve } from 'node:path'

const ROOT = resolve(import.meta.dirname, '../..')

const git = (...args: readonly string[]) => execFileSync('git', args, { cwd: ROOT, maxBuffer: 2 ** 28 })

/** The tag of the newest release; undefined where there is none, as in a clone without tags, or in files that are no clone. */
export function lastRelease(): string | undefined {
  if (!existsSync(join(ROOT, '.git'))) return undefined
  const [newest = ''] = git('tag', '--list', 'v*', '--sort=-version:refname').toString().split('\n')
  return newest === '' ? undefined : newest
}

/** A file as a release has it. @param path - from the project's root */
export const releasedFile = (tag: string, path: string) => git('show', `${tag}:${path}`).toString()

/** Writes the code of a release into a new folder, with the packages that are installed here. */
export async function writeRelease(tag: string, folder: string): Promise<void> {
  await mkdir(folder)
  execFileSync('tar', ['-x', '-C', folder], { input: git('archive', tag) })
  await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
}
