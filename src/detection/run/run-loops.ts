import { setTimeout as sleep } from 'node:timers/promises'
import { RpcError } from '../../nodes/rpc-error.ts'
import { LeaseLostError } from '../../store/leases-repository.ts'
import { compareNodes, fillStep } from './beside-following.ts'
import { giveUpLease } from './chain-lease.ts'
import { type FollowOutcome, followStep, noteFailure } from './follow-step.ts'
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
  const step = async () => (await followStep(follower, signal)).kind
  const onError = (error: unknown) => {
    follower.blocks.reset()
    noteFailure(follower, error)
  }
  await loop(follower, { step, onError, pause: (pace) => pause(follower, pace, signal) }, signal)
}

/** Reads what was left out, while this process follows the chain. */
async function fill(follower: FollowedChain, signal: AbortSignal): Promise<void> {
  const step = async () => (follower.isFollowing ? (await fillStep(follower, signal)).kind : 'CAUGHT_UP')
  const onError = (error: unknown) => {
    if (!(error instanceof LeaseLostError)) follower.backfillHealth.failed(error)
  }
  await loop(follower, { step, onError, pause: ({ waitMs }) => sleepUntil(waitMs, signal) }, signal)
}

interface LoopParts {
  readonly step: () => Promise<FollowOutcome['kind']>
  readonly onError: (error: unknown) => void
  /** Waits for the next step. */
  readonly pause: (pace: Pace) => Promise<unknown>
}

/** Takes step after step, whatever happens, until the signal fires. */
async function loop(follower: FollowedChain, { step, onError, pause }: LoopParts, signal: AbortSignal): Promise<void> {
  const { pollMs } = follower
  let failures = 0
  while (!signal.aborted) {
    const pace = await step().then(
      (kind) => paceAfter(kind, pollMs),
      (error: unknown) => {
        if (signal.aborted) return { waitMs: 0, failures: 0 }
        onError(error)
        const retryAfterMs = error instanceof RpcError ? error.retryAfterMs : undefined
        return paceAfterError(failures, { isFollowing: follower.isFollowing, pollMs, retryAfterMs })
      },
    )
    failures = pace.failures
    if (pace.waitMs > 0) await pause(pace)
  }
}

function sleepUntil(ms: number, signal: AbortSignal): Promise<unknown> {
  return sleep(ms, undefined, { signal }).catch(() => {})
}

async function watchNodes(follower: FollowedChain, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await compareNodes(follower, signal)
    await sleepUntil(Math.max(follower.pollMs, COMPARE_EVERY_MS), signal)
  }
}

/** Waits for the next step. A process that fails does not renew its lease meanwhile: perhaps another reaches the nodes. */
async function pause(follower: FollowedChain, { waitMs, failures }: Pace, signal: AbortSignal): Promise<void> {
  const wait = (ending: AbortSignal) => sleepUntil(waitMs, ending)
  if (follower.isFollowing && failures === 0) await keepLease(follower, wait, signal)
  else await wait(signal)
}
