import { lstatSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/**
 * Makes the folder in which Node keeps the compiled form of modules, which halves the processor time of a command's start.
 *
 * Node runs what it finds there, and its own choice is a folder under /tmp that another user could make first. So the cache lies beside the
 * installed packages, where only those write who could change the packages too. Only their owner keeps one: files of another user would make
 * `npm ci` fail.
 *
 * @param packages - the folder `node_modules`
 * @returns undefined where there is no safe folder: the packages are read-only or another user's, or others can write into the cache
 */
export function makeCompileCacheFolder(packages: string): string | undefined {
  const folder = join(packages, '.cache', 'waybill')
  try {
    if (!isOurs(packages)) return undefined
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    return isOurs(folder) && (lstatSync(folder).mode & WRITABLE_BY_OTHERS) === 0 ? folder : undefined
  } catch {
    return undefined
  }
}

/** The cache folder of this program's own packages. */
export function ownCacheFolder(): string | undefined {
  return makeCompileCacheFolder(fileURLToPath(new URL('../../node_modules', import.meta.url)))
}

const WRITABLE_BY_OTHERS = 0o022

function isOurs(folder: string): boolean {
  const found = lstatSync(folder)
  return found.isDirectory() && found.uid === process.getuid?.()
}
