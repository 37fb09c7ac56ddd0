/** What apps/dist holds, as a browser loads it. */
import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { encodeBody } from '../../src/api/http/http-answer.ts'
import { runCommand } from '../../tools/run-command.ts'

export const builtFolder = join(import.meta.dirname, '../../apps/dist')

/** @throws Error with what the build wrote, when it fails */
export async function buildApps(): Promise<void> {
  for (const program of ['tools/client/generate-client.ts', 'apps/build.ts']) {
    const { outcome, output } = await runCommand('node', [program, '--if-stale'])
    if (outcome !== 'ok') throw new Error(output)
  }
}

export interface Weights {
  /** Bytes of the page itself. */
  readonly page: number
  readonly style: number
  /** Of all scripts that the page loads at once. */
  readonly scripts: number
  /** How many scripts the page loads at once. */
  readonly scriptCount: number
}

/** The bytes that a browser loads before an app begins. */
export async function weigh(app: 'console' | 'pay', encoding: 'br' | 'gz'): Promise<Weights> {
  const page = await readFile(join(builtFolder, `${app}.html`), 'utf8')
  const sizesOf = (pattern: RegExp) =>
    Promise.all(
      [...page.matchAll(pattern)].map(([, path]) =>
        stat(join(builtFolder, `${path}.${encoding}`)).then(({ size }) => size),
      ),
    )
  const [styles, scripts] = await Promise.all([sizesOf(/href="([^"]+\.css)"/g), sizesOf(/(?:href|src)="([^"]+\.js)"/g)])
  const sum = (sizes: readonly number[]) => sizes.reduce((total, size) => total + size, 0)
  // The service compresses the page when it is asked for.
  const { body } = await encodeBody(page, encoding === 'br' ? 'br' : 'gzip', 0)
  return { page: body.length, style: sum(styles), scripts: sum(scripts), scriptCount: scripts.length }
}
