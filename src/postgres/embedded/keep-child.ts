/**
 * Runs a program for as long as its parent lives, where the system has no `setpriv` and `flock`, as on macOS:
 *
 *   node keep-child.ts SIGNAL LOCK_FILE WAIT_SEC COMMAND …
 *
 * The parent holds the other end of standard input. When it ends, however it does, the end of that input is read, and the program gets the signal. The
 * lock is held until the program has ended; without a lock file there is none.
 */
import { spawn } from 'node:child_process'
import { constants, openSync } from 'node:fs'
import { constants as system } from 'node:os'
import { setTimeout as wait } from 'node:timers/promises'

/** The exit code when another process holds the lock, as with `flock -E 75`. */
const LOCK_HELD = 75

/** Of open(2) on macOS and the BSDs: opens and locks a file. Node has no name for it. */
const O_EXLOCK = 0x20

const TRY_AGAIN_MS = 100

async function lock(file: string, waitSec: number): Promise<void> {
  const flags = constants.O_RDWR | constants.O_CREAT | constants.O_NONBLOCK | O_EXLOCK
  const giveUpAtMs = performance.now() + waitSec * 1_000
  for (;;) {
    try {
      // Stays open, and locked, until this process ends.
      openSync(file, flags, 0o600)
      return
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error
      if (performance.now() > giveUpAtMs) process.exit(LOCK_HELD)
    }
    await wait(TRY_AGAIN_MS)
  }
}

const [signal = '', lockFile = '', waitSec = '0', command = '', ...args] = process.argv.slice(2)
if (lockFile !== '' && process.platform !== 'linux') await lock(lockFile, Number(waitSec))
const child = spawn(command, args, { stdio: ['ignore', 'inherit', 'inherit'] })
const end = () => void child.kill(signal as NodeJS.Signals)
process.stdin.on('end', end).on('error', end).resume()
for (const each of ['SIGTERM', 'SIGINT', 'SIGQUIT'] as const) process.on(each, () => void child.kill(each))
child.on('error', (error) => {
  process.stderr.write(`${error.message}\n`)
  process.exit(1)
})
child.on('exit', (code, by) => process.exit(code ?? 128 + system.signals[by as NodeJS.Signals]))
