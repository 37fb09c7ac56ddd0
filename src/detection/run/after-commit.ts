import type { Findings } from '../match/detected.ts'
import type { FollowedChain } from './followed-chain.ts'

/** After findings were written: compares them with newer requests, and removes the oldest unmatched events. */
export async function afterCommit(follower: FollowedChain, findings: Findings): Promise<void> {
  const { replays, chain, keepUnknown } = follower
  try {
    await replays.recheck(findings)
  } catch (error) {
    // The findings are stored, so the next step does not find them again.
    follower.sweptAtMs = Number.NEGATIVE_INFINITY
    throw error
  }
  follower.unpruned += findings.unmatched.length
  if (follower.unpruned < keepUnknown / 100) return
  await chain.writer.pruneUnmatched(keepUnknown)
  follower.unpruned = 0
}
