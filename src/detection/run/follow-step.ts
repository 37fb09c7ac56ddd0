import { LeaseLostError } from '../../store/leases-repository.ts'
import type { StepOutcome } from '../follow/follower-state.ts'
import { findChain } from '../sql/chain-state-repository.ts'
import { CheckpointMovedError } from '../write/payment-writer.ts'
import type { ChainHealth } from './chain-health.ts'
import type { FollowedChain } from './followed-chain.ts'
import { holdLease, keepLease } from './keep-lease.ts'

/** How often stored events are compared with stored requests, for pairs of which neither saw the other. */
const SWEEP_EVERY_MS = 300_000
/** A step that takes longer shows in the health of the chain. */
const LONG_STEP_MS = 60_000

/** What a step came to. `ELSEWHERE`: another process follows the chain. */
export type FollowOutcome = StepOutcome | { readonly kind: 'ELSEWHERE' }

/** Takes one step of following; watches the chain where another process follows it. @throws what a step throws */
export async function followStep(follower: FollowedChain, signal?: AbortSignal): Promise<FollowOutcome> {
  const { blocks, health } = follower
  if (!(await holdLease(follower))) {
    await watch(follower)
    health.moved()
    return { kind: 'ELSEWHERE' }
  }
  await sweepWhenDue(follower)
  const onRenewal = (elapsedMs: number) => noteDuration(health, elapsedMs)
  const outcome = await keepLease(follower, (ending) => blocks.step(ending), signal, onRenewal)
  const position = blocks.position()
  if (position !== undefined) {
    follower.heights = { scanned: position.scanned.number, head: position.headBlock, final: position.finalBlock }
  }
  await noteOutcome(follower, outcome)
  return outcome
}

/** Reads what the process that follows the chain has written. */
async function watch(follower: FollowedChain): Promise<void> {
  const stored = await findChain(follower.knex, follower.chainId)
  follower.health.alarmed(stored?.alarm)
  if (stored === undefined) return
  follower.heights = { scanned: stored.scannedBlock, head: stored.headBlock, final: stored.finalBlock }
}

/** A process may have died after it stored a request or an event and before it matched the two. */
async function sweepWhenDue(follower: FollowedChain): Promise<void> {
  const { clock, replays, chainId } = follower
  if (clock().getTime() - follower.sweptAtMs < SWEEP_EVERY_MS) return
  await replays.sweep(chainId)
  follower.sweptAtMs = clock().getTime()
}

function noteDuration(health: ChainHealth, elapsedMs: number): void {
  if (elapsedMs >= LONG_STEP_MS) health.waits(`one step has taken ${Math.round(elapsedMs / 1_000)} s so far`)
}

async function noteOutcome({ knex, chainId, health }: FollowedChain, outcome: StepOutcome): Promise<void> {
  const stored = outcome.kind === 'ALARM' ? await findChain(knex, chainId) : undefined
  health.alarmed(stored?.alarm)
  if (outcome.kind === 'AGAIN' || outcome.kind === 'WAIT') health.waits(outcome.reason)
  else health.moved()
}

/** Shows in the health of the chain that a step threw. */
export function noteFailure(follower: FollowedChain, error: unknown): void {
  const { network, health, logger } = follower
  if (!(error instanceof LeaseLostError || error instanceof CheckpointMovedError)) return health.failed(error)
  logger.warn({ chain: network, err: error }, 'another process took the chain over while it was read')
  follower.isFollowing = false
  health.waits(error.message)
}
