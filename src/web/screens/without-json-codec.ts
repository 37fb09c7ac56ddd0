import { readFile } from 'node:fs/promises'
import type { Plugin } from 'esbuild'

const CODEC = /[\\/]@bufbuild[\\/]protobuf[\\/]dist[\\/]esm[\\/](?:from|to)-json\.js$/

/**
 * Leaves the codec of Protobuf's JSON out of a bundle, where a client of Connect takes it in beside that of binary: 34 of 197 kB of the page to
 * pay on, whose client speaks binary alone and reads errors with JSON.parse. A call of what is left out throws.
 */
export const withoutJsonCodec: Plugin = {
  name: 'without-json-codec',
  setup(build) {
    build.onLoad({ filter: CODEC }, async ({ path }) => {
      const names = (await readFile(path, 'utf8')).matchAll(/^export function (\w+)/gm)
      return { contents: Array.from(names, ([, name]) => `export function ${name}() { ${REFUSE} }`).join('\n') }
    })
  },
}

const REFUSE = "throw new Error('this bundle has no codec of JSON')"
