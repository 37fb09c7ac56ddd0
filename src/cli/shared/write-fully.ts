import { once } from 'node:events'
import type { Writable } from 'node:stream'

/**
 * Writes a text or bytes, and waits while the reader is behind.
 *
 * @throws the stream's error, or Error when the reader is gone
 */
export async function writeFully(out: Writable, text: string | Uint8Array): Promise<void> {
  if (out.errored) throw out.errored
  if (out.destroyed) throw new Error('the reader of the output is gone')
  if (out.write(text)) return
  const settled = new AbortController()
  try {
    await Promise.race(['drain', 'close'].map((event) => once(out, event, { signal: settled.signal })))
  } finally {
    settled.abort()
  }
}
