import type { Hex } from '../../domain/hex.ts'
import { advance, type FollowerState } from './follower-state.ts'
import { linkHeaders, type Position, takeBlocksRead } from './next-step.ts'
import { ChainMovedError, inChainOrder } from './read-events.ts'
import { CAUGHT_UP, MORE, type StepOutcome } from './step-outcome.ts'

/** Reads blocks that are not final, each by its hash. */
export async function followBlocks(
  follower: FollowerState,
  at: Position,
  numbers: readonly number[],
  signal: AbortSignal | undefined,
): Promise<StepOutcome> {
  const { reader, events } = follower
  const linked = linkHeaders(at.scanned, await reader.headers(numbers, signal))
  const hashesAsked = linked.map(({ hash }) => hash)
  const { blocks, logs, refusal } = takeBlocksRead(linked, await reader.logsOfBlocks(hashesAsked, signal))
  const tip = blocks.at(-1)
  if (tip === undefined) {
    throw new ChainMovedError(refusal?.message ?? `the parent of block ${numbers[0]} is not the block that was read`)
  }
  // A node may answer the hash of an orphaned block with no logs. If the last block is part of the chain now, all below it were too.
  const [current] = await reader.headers([tip.number], signal)
  if (current?.hash !== tip.hash) throw new ChainMovedError(`block ${tip.number} was replaced while it was read`)
  const hashes = new Set(blocks.map(({ hash }) => hash))
  const isCanonical = (_: number, hash: Hex) => hashes.has(hash)
  const findings = await events.read({ logs: inChainOrder(logs), blocks, areFinal: false, isCanonical }, signal)
  await advance(follower, at, { blocks, findings }, signal)
  return tip.number === at.headBlock ? CAUGHT_UP : MORE
}
