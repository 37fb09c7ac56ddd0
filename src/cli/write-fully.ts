import { once } from 'node:events'
import type { Writable } from 'node:stream'

/**
 * Writes a text, and waits while whoever reads is behind.
 *
 * @throws what the stream met; Error when nobody reads any more
 */
export async function writeFully(out: Writable, text: string): Promise<void> {
  if (out.errored) throw out.errored
  if (out.destroyed) throw new Error('whoever read the output has gone')
  if (out.write(text)) return
  const settled = new AbortController()
  try {
    await Promise.race(['drain', 'close'].map((event) => once(out, event, { signal: settled.signal })))
  } finally {
    settled.abort()
  }
}
