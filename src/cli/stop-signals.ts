import { constants } from 'node:os'
import { endByForce, STOP_GRACE_MS } from './end-by-force.ts'
import type { StopSignals } from './shared/command.ts'

/** Listens for SIGTERM and SIGINT. A signal during the stop ends the process by force, as does a stop that takes too long. */
export function listenForStop(): StopSignals {
  const stopping = new AbortController()
  let stoppedBy: 'SIGTERM' | 'SIGINT' | undefined
  let skipDelay: (() => void) | undefined
  let deadline: NodeJS.Timeout | undefined
  const setDeadline = () => {
    clearTimeout(deadline)
    deadline = setTimeout(() => {
      process.stderr.write(
        `waybill: the stop took longer than ${STOP_GRACE_MS / 1000} s: ending what is left by force\n`,
      )
      endByForce(1)
    }, STOP_GRACE_MS).unref()
  }
  for (const name of ['SIGTERM', 'SIGINT'] as const) {
    process.on(name, () => {
      if (skipDelay !== undefined) return skipDelay()
      if (stopping.signal.aborted) {
        process.stderr.write(`waybill: ${name} during the stop: ending what is left by force\n`)
        endByForce(128 + constants.signals[name])
      }
      stoppedBy = name
      setDeadline()
      stopping.abort(new Error(`stopped by ${name}`))
    })
  }
  return {
    signal: stopping.signal,
    async delayStop(delayMs) {
      if (delayMs === 0 || stoppedBy !== 'SIGTERM') return
      clearTimeout(deadline)
      const { promise, resolve } = Promise.withResolvers<void>()
      const timer = setTimeout(resolve, delayMs)
      skipDelay = resolve
      await promise
      clearTimeout(timer)
      skipDelay = undefined
      setDeadline()
    },
  }
}
