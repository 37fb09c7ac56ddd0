import type { Findings } from '../match/detected.ts'
import type { FollowedChain } from './followed-chain.ts'

/** After findings were written: compares them with newer requests, counts them, and removes the oldest unmatched events. */
export async function afterCommit(follower: FollowedChain, findings: Findings): Promise<void> {
  const { replays, chain, keepUnknown } = follower
  try {
    await replays.recheck(findings)
  } catch (error) {
    // The findings are stored, so the next step does not find them again.
    follower.sweptAtMs = Number.NEGATIVE_INFINITY
    throw error
  }
  countFindings(follower, findings)
  follower.unpruned += findings.unmatched.length
  if (follower.unpruned < keepUnknown / 100) return
  await chain.writer.pruneUnmatched(keepUnknown)
  follower.unpruned = 0
}

function countFindings({ meter, network: chain }: FollowedChain, { accounts, unmatched }: Findings): void {
  const payments = [...accounts.values()].reduce((sum, each) => sum + each.payments.length, 0)
  if (payments > 0) meter.count('waybill_payments_found_total', { chain }, payments)
  for (const { reason } of unmatched) meter.count('waybill_unmatched_events_total', { chain, reason })
}
