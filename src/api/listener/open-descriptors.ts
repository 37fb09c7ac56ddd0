import { closeSync, openSync } from 'node:fs'
import type { Server } from 'node:net'
import { devNull } from 'node:os'
import type { Logger } from '../../domain/logger.ts'

/** How often it is tried whether a file can be opened, beside each new connection, in milliseconds. */
const TRY_EVERY_MS = 1_000

const WARN_EVERY_MS = 60_000

/**
 * Warns, once a minute at most, when no more files may be open. Node closes the connections that wait at a port then, and says so to nobody; it is
 * found by opening a file.
 */
export function watchDescriptors(port: Server, logger: Logger): void {
  let quietUntilMs = 0
  const judge = ({ code }: NodeJS.ErrnoException) => {
    if ((code !== 'EMFILE' && code !== 'ENFILE') || performance.now() < quietUntilMs) return
    quietUntilMs = performance.now() + WARN_EVERY_MS
    logger.warn({ code }, 'no more files may be open: new connections are closed at once')
  }
  const tryToOpen = () => {
    try {
      closeSync(openSync(devNull, 'r'))
    } catch (error) {
      judge(error as NodeJS.ErrnoException)
    }
  }
  const timer = setInterval(tryToOpen, TRY_EVERY_MS).unref()
  // A connection that could not be accepted must not end the process.
  port.on('connection', tryToOpen).on('error', judge)
  port.once('close', () => clearInterval(timer))
}
