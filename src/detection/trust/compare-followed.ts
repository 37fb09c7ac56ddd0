import type { StoredBlock } from '../sql/chain-state-repository.ts'
import { type ComparedNodes, notePassed } from './compared-nodes.ts'
import type { FollowedBlock } from './followed-blocks.ts'
import { judgeLogs } from './judge-logs.ts'
import { firstDifference, logsWithin } from './same-logs.ts'
import { askSecond, chooseSecond } from './second-node.ts'

/** The nodes, and which of them had a run compared: the first run of a node is compared at once. */
type Nodes = ComparedNodes & { readonly sampleLogs: number; readonly compared: Set<number> }

/** Blocks that one node gave, one after the other. */
interface Run {
  readonly node: number
  readonly from: number
  readonly blocks: readonly FollowedBlock[]
}

/**
 * Compares blocks that were followed and are final now with another node, in runs: what was given then, not what the node would give now. A run waits
 * until another node answers: a node that left logs out is often the one that answers while others are down.
 */
export async function compareFollowed(nodes: Nodes, final: StoredBlock, signal?: AbortSignal): Promise<void> {
  const { followed, sampleLogs, compared, peers } = nodes
  const known = followed.upTo(final.number)
  const [[from, head] = []] = known
  if (from === undefined || head === undefined || sampleLogs === 0 || peers.length < 2) return
  const { node } = head
  const ofRun = known.filter(([number, block], index) => number === from + index && block.node === node)
  const isFirst = !compared.has(node)
  if (!isFirst && ofRun.length < sampleLogs && ofRun.length === known.length) return
  await compareRun(nodes, { node, from, blocks: ofRun.map(([, block]) => block) }, signal)
}

async function compareRun(nodes: Nodes, { node, from, blocks }: Run, signal: AbortSignal | undefined): Promise<void> {
  const { followed, compared, ledger } = nodes
  const second = chooseSecond(nodes, node)
  const range = { from, to: from + blocks.length - 1 }
  const other = second === undefined ? undefined : await askSecond(nodes, { second, range, half: 'FIRST' }, signal)
  if (second === undefined || other === undefined) return
  compared.add(node)
  const { window } = other
  const within = blocks.slice(0, window.to - from + 1)
  const forget = () => followed.forget(within.map((_block, index) => from + index))
  if (within.at(-1)?.hash !== other.last.hash) {
    // Which of them is on another branch shows when their heads are compared.
    await ledger.doubt({ node, ...window })
    return forget()
  }
  const logs = logsWithin(
    within.flatMap((block) => block.logs),
    window,
  )
  const block = firstDifference(logs, other.logs)
  if (block === undefined) {
    forget()
    return notePassed(nodes, { node, lane: 'FOLLOW', block: window.to })
  }
  const statements = [
    { node, logs },
    { node: second, logs: other.logs },
  ]
  const blamed = await judgeLogs(nodes, { block }, statements, signal)
  // Where the second node alone was wrong, the run is compared with another.
  if (!blamed.has(node)) return
  await ledger.doubt({ node, ...window })
  forget()
}
