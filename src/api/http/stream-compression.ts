import { once } from 'node:events'
import { constants, createBrotliCompress, createGzip } from 'node:zlib'
import type { ContentEncoding } from './http-answer.ts'

export type StreamCompressor = ReturnType<typeof createStreamCompressor>

/** A window of 64 KiB is enough for messages that repeat their names, and bounds the memory of a thousand streams. */
const BROTLI_WINDOW_BITS = 16
const BROTLI_QUALITY = 4

/** Makes what compresses a body whose pieces can be read as they arrive. */
export function createStreamCompressor(encoding: ContentEncoding) {
  const stream = encoding === 'gzip' ? createGzip() : createBrotli()
  const flush = encoding === 'gzip' ? constants.Z_SYNC_FLUSH : constants.BROTLI_OPERATION_FLUSH
  let chunks: Uint8Array[] = []
  const collect = () => {
    for (let chunk = stream.read() as Buffer | null; chunk !== null; chunk = stream.read()) chunks.push(chunk)
  }
  // Also in the middle of a piece: zlib stops when its output is not read.
  stream.on('readable', collect)
  stream.on('error', () => {})
  const take = () => {
    collect()
    const taken = Buffer.concat(chunks)
    chunks = []
    return taken
  }
  return {
    /** Compresses a piece and flushes it, so that it can be read without the next one. */
    async compress(piece: string): Promise<Uint8Array> {
      stream.write(piece)
      await new Promise<void>((resolve) => stream.flush(flush, () => resolve()))
      return take()
    },
    async finish(): Promise<Uint8Array> {
      const ended = once(stream, 'end')
      stream.end()
      await ended
      return take()
    },
    /** Frees its memory. May be called at any time. */
    close: () => stream.close(),
  }
}

function createBrotli() {
  return createBrotliCompress({
    params: {
      [constants.BROTLI_PARAM_MODE]: constants.BROTLI_MODE_TEXT,
      [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY,
      [constants.BROTLI_PARAM_LGWIN]: BROTLI_WINDOW_BITS,
    },
  })
}
