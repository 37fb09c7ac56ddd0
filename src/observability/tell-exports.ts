import type { Logger } from '../domain/logger.ts'

/** Hears how each export of a signal has ended; the code of a success is 0. */
export type TellExport = (result: { readonly code: number; readonly error?: NodeJS.ErrnoException }) => void

/** Tells when exports begin to fail, and when they work again. The errors hold whole answers of the collector, so their messages alone are logged. */
export function tellExports(logger: Logger, signal: 'metrics' | 'traces'): TellExport {
  let isFailing = false
  return ({ code, error }) => {
    if (isFailing === (code !== 0)) return
    isFailing = !isFailing
    // Of a name with several addresses the message is empty.
    if (isFailing) logger.warn({ signal, reason: error?.message || error?.code }, 'exports over OTLP fail')
    else logger.info({ signal }, 'exports over OTLP work again')
  }
}
