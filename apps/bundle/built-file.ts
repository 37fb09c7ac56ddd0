import { hash } from 'node:crypto'

/** A file of `apps/dist`, at the path at which it is served: `console/assets/console-X2J4.js`, `docs/start.html`. */
export interface BuiltFile {
  readonly path: string
  readonly body: Uint8Array | string
}

/** Twelve characters that change with the content. */
export function digestOf(content: Uint8Array | string): string {
  return hash('sha256', content, 'base64url').slice(0, 12)
}
