import type { RpcLog } from '../../contracts/decode-events.ts'
import { RpcError } from '../../nodes/rpc-error.ts'
import type { BlockHeader, ChainView } from '../read/chain-reader.ts'
import type { StoredBlock } from '../sql/chain-state-repository.ts'
import { ChainMovedError } from './read-events.ts'

/** How far a chain was read, and what a follower does next: values and rules, without I/O. */

/** How far a chain was read. */
export interface Position {
  /** The last block that was read. */
  readonly scanned: StoredBlock
  /** The last final block and those above it that were read, lowest first; the last of them is `scanned`. */
  readonly blocks: readonly StoredBlock[]
  readonly headBlock: number
  readonly finalBlock: number
}

/**
 * What a step came to.
 * - `MORE`: it moved, and there is more to do at once
 * - `CAUGHT_UP`: there is nothing to do before the next block
 * - `ALARM`: the chain is stopped
 * - `AGAIN`: it read nothing, since the chain moved meanwhile or the range was too wide: the next step may do better
 * - `WAIT`: it read nothing, since the node lacks something
 */
export type StepOutcome =
  | { readonly kind: 'MORE' | 'CAUGHT_UP' | 'ALARM' }
  | { readonly kind: 'AGAIN' | 'WAIT'; readonly reason: string }

export const MORE: StepOutcome = { kind: 'MORE' }
export const CAUGHT_UP: StepOutcome = { kind: 'CAUGHT_UP' }
export const ALARM: StepOutcome = { kind: 'ALARM' }

/** What a look at the chain leads to. Block numbers include both ends. */
export type NextStep =
  /** There are so many new final blocks that back-fill reads them: go on at the last of them. */
  | { readonly kind: 'JUMP'; readonly to: number }
  /** Final blocks: read them as a range of logs. */
  | { readonly kind: 'CATCH_UP'; readonly from: number; readonly until: number }
  /** Blocks that are not final: read each by its hash. */
  | { readonly kind: 'FOLLOW'; readonly numbers: readonly number[] }
  /** There is no new block. */
  | { readonly kind: 'STAY' }
  /** The node is behind the block that was read last. */
  | { readonly kind: 'NODE_BEHIND'; readonly reason: string }

const MAX_BLOCKS_A_STEP = 50

/** New payments do not wait for more final blocks than this. The narrowest nodes give 10 in a request, most give all. */
const MAX_CATCH_UP_BLOCKS = 500

/** Whether a reorg replaced the block that was read last, or the head of a chain that became shorter. */
export function isForked({ scanned, blocks }: Position, { atTip, head }: ChainView): boolean {
  if (atTip !== undefined) return atTip.hash !== scanned.hash
  const known = blocks.find(({ number }) => number === head.number)
  return known !== undefined && known.hash !== head.hash
}

/** The position with the newest head and final block. Neither goes back: a node may lag behind the one that was asked before. */
export function withHeights(
  position: Position,
  heights: { readonly head: number; readonly finalBlock: number },
): Position {
  return {
    ...position,
    headBlock: Math.max(heights.head, position.scanned.number),
    finalBlock: Math.max(heights.finalBlock, position.finalBlock),
  }
}

/**
 * Decides what to do next on a chain that is not forked.
 *
 * @param position - with the head and the final block of the view
 */
export function chooseStep({ scanned, headBlock, finalBlock }: Position, { head }: ChainView): NextStep {
  if (head.number < scanned.number) {
    return { kind: 'NODE_BEHIND', reason: `the node is at block ${head.number}, below block ${scanned.number}` }
  }
  if (headBlock === scanned.number) return { kind: 'STAY' }
  const from = scanned.number + 1
  if (finalBlock - scanned.number > MAX_CATCH_UP_BLOCKS) return { kind: 'JUMP', to: finalBlock }
  if (scanned.number < finalBlock) return { kind: 'CATCH_UP', from, until: finalBlock }
  const last = Math.min(headBlock, scanned.number + MAX_BLOCKS_A_STEP)
  return { kind: 'FOLLOW', numbers: Array.from({ length: last - scanned.number }, (_, index) => from + index) }
}

/** The position after blocks were read and written. */
export function afterBlocks(position: Position, blocks: readonly BlockHeader[]): Position {
  const read = blocks.map(({ number, hash }) => ({ number, hash }))
  const scanned = read.at(-1) ?? position.scanned
  const lowest = Math.min(position.finalBlock, scanned.number)
  const kept = [...position.blocks, ...read].filter(({ number }) => number >= lowest)
  return { ...position, scanned, blocks: kept }
}

/** The position after a reorg. @param to - the highest block that is still part of the chain */
export function afterRewind(position: Position, to: StoredBlock): Position {
  return { ...position, scanned: to, blocks: position.blocks.filter(({ number }) => number <= to.number) }
}

/** What to do on a chain that is forked. */
export type ForkDecision =
  /** Remove what was found above `to`, the highest block that is still part of the chain. */
  | { readonly kind: 'REWIND'; readonly to: StoredBlock }
  /** The last block is part of the chain again: look at the chain once more. */
  | { readonly kind: 'CAME_BACK'; readonly reason: string }
  /** The node does not have the last final block, so it lags. */
  | { readonly kind: 'NODE_BEHIND'; readonly reason: string }
  /** A final block was replaced, which must not happen. */
  | { readonly kind: 'FINAL_REPLACED'; readonly reason: string }

/**
 * Decides how far a reorg goes back.
 *
 * @param headers - the blocks that are now at the numbers of the position's blocks, in their order; undefined where the node has none
 */
export function decideFork({ scanned, blocks }: Position, headers: readonly (BlockHeader | undefined)[]): ForkDecision {
  const hashes = new Map(headers.flatMap((header) => (header === undefined ? [] : [[header.number, header.hash]])))
  const to = blocks.findLast(({ number, hash }) => hashes.get(number) === hash)
  if (to !== undefined && to.number !== scanned.number) return { kind: 'REWIND', to }
  if (to !== undefined) return { kind: 'CAME_BACK', reason: `block ${to.number} was missing and is there again` }
  const [final] = blocks
  const [current] = headers
  if (current === undefined || final === undefined) {
    return { kind: 'NODE_BEHIND', reason: `the node does not have block ${final?.number}, which was read before` }
  }
  const reason = `block ${final.number} was final with hash ${final.hash}, and is now ${current.hash}`
  return { kind: 'FINAL_REPLACED', reason }
}

/** The headers that follow on a block, up to the first that is missing or has another parent. */
export function linkHeaders(block: StoredBlock, headers: readonly (BlockHeader | undefined)[]): BlockHeader[] {
  const linked: BlockHeader[] = []
  let parent = block.hash
  for (const header of headers) {
    if (header?.parentHash !== parent) break
    linked.push(header)
    parent = header.hash
  }
  return linked
}

/** Blocks whose logs were read, up to the first whose logs the node refused. */
interface BlocksRead {
  readonly blocks: readonly BlockHeader[]
  readonly logs: readonly RpcLog[]
  /** The error of the first block that was refused. */
  readonly refusal: RpcError | undefined
}

/** @param lists - the logs of each block, or the node's error */
export function takeBlocksRead(blocks: readonly BlockHeader[], lists: readonly (RpcLog[] | RpcError)[]): BlocksRead {
  const refusal = lists.find((list) => list instanceof RpcError)
  const read = refusal === undefined ? lists : lists.slice(0, lists.indexOf(refusal))
  return {
    blocks: blocks.slice(0, read.length),
    logs: read.flatMap((list) => (list instanceof RpcError ? [] : list)),
    refusal,
  }
}

/** When a follower distrusts a node, and when it believes that a final block was replaced: values and rules, without I/O. */

/** What was noticed about the nodes of a chain. */
export interface Suspicion {
  /** Steps in a row whose answers contradicted each other, or what was read before. */
  readonly contradictions: number
  /** Present while nodes say that a final block was replaced. */
  readonly replacement?: Replacement | undefined
}

/** Nodes that say that a final block was replaced. */
interface Replacement {
  /** Since when: milliseconds since 1970. */
  readonly sinceMs: number
  /** By their place among the URLs. */
  readonly nodes: ReadonlySet<number>
}

export const NO_SUSPICION: Suspicion = { contradictions: 0 }

/** A URL may stand for several machines, which differ by some blocks for some seconds: a node is distrusted only after this many contradictions in a row. */
const CONTRADICTIONS_OF_A_NODE = 3

/** A node that does not answer cannot say whether a final block was replaced. It is waited for this long. */
const SILENT_NODE_MS = 60_000

/** Counts a contradiction. */
export function noteContradiction(suspicion: Suspicion): Suspicion {
  return { ...suspicion, contradictions: suspicion.contradictions + 1 }
}

/** Whether the contradictions so far are reason to ask another node. */
export function isContradictionOfNode({ contradictions }: Suspicion): boolean {
  return contradictions > 0 && contradictions % CONTRADICTIONS_OF_A_NODE === 0
}

/** What to do after a look at the chain failed. */
interface FailureDecision {
  /** Whether to ask other nodes first for a while. */
  readonly doubtsNode: boolean
  /** Whether to simply try again; otherwise the error goes to the caller. */
  readonly retries: boolean
  readonly suspicion: Suspicion
}

/** Decides what an error means for the node that answered last. */
export function decideFailure(error: unknown, suspicion: Suspicion): FailureDecision {
  if (error instanceof ChainMovedError) {
    const noted = noteContradiction(suspicion)
    return { doubtsNode: isContradictionOfNode(noted), retries: true, suspicion: noted }
  }
  // Another node may have what this one lacks. What is too large is so for every node.
  const doubtsNode = error instanceof RpcError && error.kind !== 'TOO_LARGE'
  return { doubtsNode, retries: false, suspicion }
}

/** Notes that nodes say that a final block was replaced. @param node - which of them said so now; undefined where that is unknown */
export function noteReplacement(suspicion: Suspicion, nowMs: number, node?: number): Suspicion {
  const { sinceMs, nodes } = suspicion.replacement ?? { sinceMs: nowMs, nodes: new Set<number>() }
  return { ...suspicion, replacement: { sinceMs, nodes: node === undefined ? nodes : new Set([...nodes, node]) } }
}

/**
 * Whether the replacement of a final block is certain. Only an operator ends an alarm, so all nodes that answer must agree, and nodes that are
 * silent are waited for.
 */
export function isReplacementCertain(
  { replacement }: Suspicion,
  { nodes, nowMs }: { readonly nodes: number; readonly nowMs: number },
): boolean {
  if (replacement === undefined) return false
  return replacement.nodes.size >= nodes || nowMs - replacement.sinceMs >= SILENT_NODE_MS
}
