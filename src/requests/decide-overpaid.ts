import { setTimeout as sleep } from 'node:timers/promises'
import type { Knex } from 'knex'
import type { Logger } from '../domain/logger.ts'
import { decideOverpaid, findUndecidedAccounts } from './sql/overpaid-repository.ts'

/** Decides, while it runs, which requests are over-paid that older versions have stored or settled. */
export interface OverpaidDeciding {
  /** Starts in the background, and looks again at intervals: an older process may run beside this one. */
  start(): void
  /** Resolves when the current step is done. */
  stop(): Promise<void>
}

export interface DecidingOptions {
  readonly knex: Knex
  readonly logger: Logger
  /** Between two rounds; default ten minutes. */
  readonly everyMs?: number
}

/** Requests decided in one transaction, for which the account's writers wait some 10 ms. Of many more, the planner would read all requests. */
const STEP = 200

/** Creates the deciding of one process. Several may run at once: each step takes requests that nobody has decided. */
export function createOverpaidDeciding({ knex, logger, everyMs = 600_000 }: DecidingOptions): OverpaidDeciding {
  let running: { readonly ending: AbortController; readonly done: Promise<void> } | undefined

  async function run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await decideAllOverpaid(knex, { signal }).catch((error: unknown) => {
        if (!signal.aborted) logger.warn({ err: error }, 'over-paid requests could not be marked; trying again')
      })
      await sleep(everyMs, undefined, { signal }).catch(() => {})
    }
  }

  return {
    start() {
      if (running !== undefined) return
      const ending = new AbortController()
      running = { ending, done: run(ending.signal) }
    },
    async stop() {
      running?.ending.abort(new Error('the process is stopping'))
      await running?.done
      running = undefined
    },
  }
}

/**
 * Decides all requests of all accounts, in steps between which the account's writers can write. What an earlier call left is continued.
 *
 * @returns how many were decided
 * @throws the signal's reason
 */
export async function decideAllOverpaid(
  knex: Knex,
  { step = STEP, signal }: { readonly step?: number; readonly signal?: AbortSignal } = {},
): Promise<number> {
  let decided = 0
  for (const accountId of await findUndecidedAccounts(knex)) {
    let after: Awaited<ReturnType<typeof decideOverpaid>>['last']
    for (let isMore = true; isMore; ) {
      const startedMs = performance.now()
      const { count, last } = await decideOverpaid(knex, accountId, { after, step, signal })
      decided += count
      after = last
      isMore = count === step
      // It waits as long as the step took, so it uses at most half of the server.
      if (isMore) await sleep(performance.now() - startedMs, undefined, { signal })
    }
  }
  return decided
}
