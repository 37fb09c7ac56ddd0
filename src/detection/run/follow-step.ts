import { LeaseLostError } from '../../store/leases-repository.ts'
import type { StepOutcome } from '../follow/next-step.ts'
import { findChain } from '../sql/chain-state-repository.ts'
import { CheckpointMovedError } from '../write/payment-writer.ts'
import type { ChainHealth } from './chain-health.ts'
import { type FollowedChain, holdLease, keepLease } from './followed-chain.ts'

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
    // What kept this process from moving may keep the other one, too.
    if (await watch(follower)) health.moved()
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

/** Reads what the process that follows the chain has written. @returns whether it has read blocks meanwhile */
async function watch(follower: FollowedChain): Promise<boolean> {
  const stored = await findChain(follower.knex, follower.chainId)
  follower.health.alarmed(stored?.alarm)
  if (stored === undefined) return false
  const before = follower.heights?.scanned
  follower.heights = { scanned: stored.scannedBlock, head: stored.headBlock, final: stored.finalBlock }
  return before !== undefined && before !== stored.scannedBlock
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
}

/** How long a chain's follower waits between two steps: values and rules, without I/O. */

/** When the next step is due. */
export interface Pace {
  readonly waitMs: number
  /** Steps in a row that failed. */
  readonly failures: number
}

const MIN_POLL_MS = 250
const MAX_POLL_MS = 2_000
const FIRST_BACKOFF_MS = 500
const MAX_BACKOFF_MS = 30_000
/** How often to check whether the process that follows the chain still does, and what it has written. */
const WATCH_EVERY_MS = 750

/** Time between two looks at a chain that has nothing new: half its block time, within limits. */
export function pollIntervalOf(blockTimeSeconds: number): number {
  return Math.min(MAX_POLL_MS, Math.max(MIN_POLL_MS, blockTimeSeconds * 500))
}

/** The pace after a step that did not throw. */
export function paceAfter(outcome: FollowOutcome['kind'], pollMs: number): Pace {
  if (outcome === 'MORE') return { waitMs: 0, failures: 0 }
  return { waitMs: outcome === 'ELSEWHERE' ? WATCH_EVERY_MS : pollMs, failures: 0 }
}

interface FailedStep {
  readonly isFollowing: boolean
  readonly pollMs: number
  /** How long the node asked to be left alone. */
  readonly retryAfterMs?: number | undefined
}

/**
 * The pace after a step that threw. The time doubles with each failure, unless the node says when to ask again; where another process took the chain
 * over, that is no failure.
 *
 * @param failures - in a row before this one
 */
export function paceAfterError(failures: number, { isFollowing, pollMs, retryAfterMs }: FailedStep): Pace {
  if (!isFollowing) return { waitMs: pollMs, failures: 0 }
  const waitMs = Math.max(FIRST_BACKOFF_MS, retryAfterMs ?? FIRST_BACKOFF_MS * 2 ** failures)
  return { waitMs: Math.min(MAX_BACKOFF_MS, waitMs), failures: failures + 1 }
}
