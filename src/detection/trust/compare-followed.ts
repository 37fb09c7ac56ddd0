import type { StoredBlock } from '../sql/chain-state-repository.ts'
import { type ComparedNodes, notePassed } from './compared-nodes.ts'
import { judgeLogs } from './judge-logs.ts'
import { firstDifference, logsWithin } from './same-logs.ts'
import { askSecond, chooseSecond } from './second-node.ts'

/** `compared` holds the nodes of which a run was compared. The first run of a node is compared at once, however short it is. */
type Nodes = ComparedNodes & { readonly sampleLogs: number; readonly compared: Set<number> }

/**
 * Compares the logs of followed blocks, once they are final, with those of a second node. What the node gave at the time is compared, since it may
 * answer otherwise now. Consecutive blocks from one node are compared in one question.
 */
export async function compareFollowed(nodes: Nodes, final: StoredBlock, signal?: AbortSignal): Promise<void> {
  const { followed, sampleLogs, compared, peers } = nodes
  const known = followed.upTo(final.number)
  const [[first, head] = []] = known
  if (first === undefined || head === undefined || sampleLogs === 0 || peers.length < 2) return
  const run = known.filter(([number, { node }], index) => number === first + index && node === head.node)
  const isFirst = !compared.has(head.node)
  if (!isFirst && run.length < sampleLogs && run.length === known.length) return
  const to = first + run.length - 1
  const second = chooseSecond(nodes, head.node)
  const other = second === undefined ? undefined : await askSecond(nodes, second, { from: first, to }, signal)
  followed.forget(run.map(([number]) => number))
  if (second === undefined || other === undefined) return
  compared.add(head.node)
  const { window } = other
  const last = run[window.to - first]?.[1]
  // The nodes are on different branches. Comparing their heads finds out which of them is wrong.
  if (last !== undefined && last.hash !== other.last.hash) return
  const logs = logsWithin(
    run.flatMap(([, block]) => block.logs),
    window,
  )
  const block = firstDifference(logs, other.logs)
  if (block === undefined) return notePassed(nodes, { node: head.node, lane: 'FOLLOW', block: to })
  const statements = [
    { node: head.node, logs },
    { node: second, logs: other.logs },
  ]
  await judgeLogs(nodes, { block }, statements, signal)
}
