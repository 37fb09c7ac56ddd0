import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from './domain/logger.ts'

/** Work that is done again and again beside the calls. */
export interface BackgroundJob {
  /** For logs, as "background work failed: …". */
  readonly name: string
  /** From the end of one round to the start of the next. */
  readonly everyMs: number
  /** Does what is due now. Ends soon after the signal aborts. */
  readonly round: (signal: AbortSignal) => Promise<unknown>
  /** Called once after the last round. */
  readonly end?: () => Promise<void>
}

export type Background = ReturnType<typeof createBackground>

/** Makes the background of a process, its jobs. A job that fails is tried again after its usual time; the other jobs go on. */
export function createBackground(jobs: readonly BackgroundJob[], logger: Logger) {
  let running: { readonly ending: AbortController; readonly done: Promise<unknown> } | undefined
  return {
    /** Starts all jobs; a second call does nothing. */
    start(): void {
      if (running !== undefined) return
      const ending = new AbortController()
      running = { ending, done: Promise.all(jobs.map((job) => run(job, logger, ending.signal))) }
    },
    /** Resolves when no job is running any more. Never rejects. */
    async stop(): Promise<void> {
      running?.ending.abort(new Error('the process is stopping'))
      await running?.done
      running = undefined
    },
  }
}

async function run({ name, everyMs, round, end }: BackgroundJob, logger: Logger, signal: AbortSignal): Promise<void> {
  let hasFailed = false
  while (!signal.aborted) {
    try {
      await round(signal)
      hasFailed = false
    } catch (err) {
      // Of an outage that lasts, one line is enough.
      if (!signal.aborted)
        logger[hasFailed ? 'debug' : 'warn']({ err }, `background work failed: ${name}; trying again`)
      hasFailed = true
    }
    await sleep(everyMs, undefined, { signal }).catch(() => {})
  }
  await end?.().catch((err: unknown) => logger.debug({ err }, `background work did not end cleanly: ${name}`))
}
