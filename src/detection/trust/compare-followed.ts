import type { StoredBlock } from '../sql/chain-state-repository.ts'
import { compareLogs } from './compare-logs.ts'
import type { TrustedNodes } from './trusted-nodes.ts'

/**
 * Compares blocks that were followed and are final now with another node, in runs: what was given then, not what the node would give now. A run waits
 * until another node answers: a node that left logs out is often the one that answers while others are down.
 *
 * @param compared - nodes that had a run compared: the first one of a node is compared at once
 */
export async function compareFollowed(
  nodes: TrustedNodes & { readonly compared: Set<number> },
  final: StoredBlock,
  signal?: AbortSignal,
): Promise<void> {
  const { followed, sampleLogs, compared, peers, given } = nodes
  const known = followed.upTo(final.number)
  const [[from, head] = []] = known
  if (from === undefined || head === undefined || sampleLogs === 0 || peers.length < 2) return
  const { node } = head
  const run = known.filter(([number, block], index) => number === from + index && block.node === node)
  if (compared.has(node) && run.length < sampleLogs && run.length === known.length) return
  const blocks = new Map(run)
  const range = { from, to: from + run.length - 1 }
  const logs = run.flatMap(([, block]) => block.logs)
  const outcome = await compareLogs(nodes, { node, range, logs, hashOf: (block) => blocks.get(block)?.hash }, signal)
  if (outcome.kind === 'NOTHING') return
  compared.add(node)
  // Where the second node alone was wrong, the run is compared with another.
  if (outcome.kind === 'OTHER_LOGS' && outcome.isRight) return
  const to = outcome.kind === 'SAME' ? outcome.to : range.to
  followed.forget(Array.from({ length: to - from + 1 }, (_, index) => from + index))
  if (outcome.kind === 'SAME') await given.pass({ node, lane: 'FOLLOW', to: Math.min(to, followed.lowestOf(node) - 1) })
  // Of a node with another block it shows which is right when heads are compared.
  else await given.doubt({ node, from, to })
}
