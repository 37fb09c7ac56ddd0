import { setTimeout as sleep } from 'node:timers/promises'
import { RpcError } from '../../nodes/rpc-error.ts'
import { LeaseLostError } from '../../store/leases-repository.ts'
import { compareNodes, fillStep } from './beside-following.ts'
import { giveUpLease } from './chain-lease.ts'
import { followStep, noteFailure } from './follow-step.ts'
import type { FollowedChain } from './followed-chain.ts'
import { keepLease } from './keep-lease.ts'
import { type Pace, paceAfter, paceAfterError } from './step-pace.ts'

const COMPARE_EVERY_MS = 2_000

/** Follows, back-fills and compares nodes until the signal fires: in loops of their own, so that following never waits for the others. Never rejects. */
export async function runLoops(follower: FollowedChain, signal: AbortSignal): Promise<void> {
  const stopReporting = follower.reporter.start()
  await Promise.all([follow(follower, signal), fill(follower, signal), watchNodes(follower, signal)])
  await stopReporting()
  await giveUpLease(follower)
}

async function follow(follower: FollowedChain, signal: AbortSignal): Promise<void> {
  let failures = 0
  while (!signal.aborted) {
    const pace = await turn(follower, failures, signal)
    failures = pace.failures
    if (pace.waitMs > 0) await pause(follower, pace, signal)
  }
}

/** Reads what was left out, while this process follows the chain. */
async function fill(follower: FollowedChain, signal: AbortSignal): Promise<void> {
  const { pollMs, backfillHealth } = follower
  let failures = 0
  while (!signal.aborted) {
    let pace: Pace = { waitMs: pollMs, failures: 0 }
    try {
      if (follower.isFollowing) pace = paceAfter((await fillStep(follower, signal)).kind, pollMs)
    } catch (error) {
      if (signal.aborted) return
      if (!(error instanceof LeaseLostError)) backfillHealth.failed(error)
      pace = paceAfterError(failures, { isFollowing: follower.isFollowing, pollMs, retryAfterMs: retryAfterOf(error) })
    }
    failures = pace.failures
    if (pace.waitMs > 0) await sleep(pace.waitMs, undefined, { signal }).catch(() => {})
  }
}

function retryAfterOf(error: unknown): number | undefined {
  return error instanceof RpcError ? error.retryAfterMs : undefined
}

async function watchNodes(follower: FollowedChain, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await compareNodes(follower, signal)
    await sleep(Math.max(follower.pollMs, COMPARE_EVERY_MS), undefined, { signal }).catch(() => {})
  }
}

/** Waits for the next step. A process that fails does not renew its lease meanwhile: perhaps another reaches the nodes. */
async function pause(follower: FollowedChain, { waitMs, failures }: Pace, signal: AbortSignal): Promise<void> {
  const { knex, lease, leaseTtlMs, isFollowing } = follower
  const wait = (ending: AbortSignal) => sleep(waitMs, undefined, { signal: ending }).catch(() => {})
  if (isFollowing && failures === 0) await keepLease({ knex, lease, ttlMs: leaseTtlMs }, wait, { signal })
  else await wait(signal)
}

/** Takes one step, whatever happens. */
async function turn(follower: FollowedChain, failures: number, signal: AbortSignal): Promise<Pace> {
  const { pollMs } = follower
  try {
    return paceAfter((await followStep(follower, signal)).kind, pollMs)
  } catch (error) {
    if (signal.aborted) return { waitMs: 0, failures: 0 }
    follower.blocks.reset()
    noteFailure(follower, error)
    return paceAfterError(failures, { isFollowing: follower.isFollowing, pollMs, retryAfterMs: retryAfterOf(error) })
  }
}
