import type { Knex } from 'knex'
import {
  type LimitsOutcome,
  MAX_OVERHEAD,
  openLimitsStage,
  overheadOf,
} from '../../test/support/chains/limits-stage.ts'
import { NODE_PROFILES, type NodeProfile } from '../../test/support/chains/node-profiles.ts'
import type { Figure } from '../report.ts'

const CHAIN_ID = 31_498

/**
 * Reads a chain's past and follows it through nodes with the limits of providers, on a chain of anvil. Prints the five dearest limits.
 *
 * @returns the calls, or the requests where they are more, divided by those of a client that knows the limits: at most, and as the median
 * @throws where a payment is missing behind a limit
 */
export async function measureOverhead(knex: Knex): Promise<Figure[]> {
  const stage = await openLimitsStage(knex, CHAIN_ID, { blocks: 300, payments: 14 })
  try {
    const unlimited = await stage.run({})
    const found: { readonly profile: NodeProfile; readonly overhead: number }[] = []
    for (const profile of NODE_PROFILES) {
      const outcome = await stage.run(profile.terms)
      assertAllFound(profile, outcome)
      found.push({ profile, overhead: overheadOf(unlimited, outcome, profile.terms) })
    }
    const dearest = found.toSorted((a, b) => b.overhead - a.overhead)
    for (const { profile, overhead } of dearest.slice(0, 5)) console.error(`${profile.name}: ${overhead.toFixed(2)}`)
    const [most] = dearest
    const median = dearest[Math.floor(dearest.length / 2)]
    return [
      { name: 'calls.overhead', value: most?.overhead ?? 0, unit: 'x', target: { atMost: MAX_OVERHEAD } },
      { name: 'calls.overhead-median', value: median?.overhead ?? 0, unit: 'x' },
    ]
  } finally {
    await stage.stop()
  }
}

function assertAllFound({ name }: NodeProfile, { found, made }: LimitsOutcome): void {
  if (found !== made) throw new Error(`${found} of ${made} payments were found behind the limits of ${name}`)
}
