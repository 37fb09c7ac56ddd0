import { setTimeout as sleep } from 'node:timers/promises'
import type { Knex } from 'knex'
import { decideOverpaid, findUndecidedAccounts } from './sql/overpaid-repository.ts'

/** Requests decided in one transaction, for which the account's writers wait some 10 ms. Of many more, the planner would read all requests. */
const STEP = 200

/**
 * Decides of all requests of all accounts whether they are over-paid, where an older version has stored or settled them. It works in steps,
 * between which the account's writers can write. Several processes may run it at once: each step takes requests that nobody has decided.
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
