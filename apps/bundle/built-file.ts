import { createHash, hash } from 'node:crypto'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** A file of `apps/dist`, at the path at which it is served: `console/assets/console-X2J4.js`, `docs/start.html`. */
export interface BuiltFile {
  readonly path: string
  readonly body: Uint8Array | string
}

/** Twelve characters that change with the content. */
export function digestOf(content: Uint8Array | string): string {
  return hash('sha256', content, 'base64url').slice(0, 12)
}

/** A digest of the files that match some globs below a folder, by path and content, without tests. */
export function digestOfFiles(folder: string, globs: readonly string[]): string {
  const digest = createHash('sha256')
  for (const path of globSync(globs, { cwd: folder }).toSorted()) {
    if (path.endsWith('.test.ts')) continue
    const content = readFileSync(join(folder, path))
    digest.update(`${path} ${content.length}\n`).update(content)
  }
  return digest.digest('base64url')
}
