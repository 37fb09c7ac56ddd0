import type { Address } from '../../domain/address.ts'
import { RpcError } from '../../nodes/rpc-error.ts'
import type { NodePeer } from '../open-chain.ts'
import type { FollowedBlocks } from './followed-blocks.ts'
import type { ReadingLedger } from './reading-ledger.ts'
import type { SampleTurns } from './sample-turns.ts'
import type { Suspects } from './suspects.ts'

/** The nodes of one chain that are compared with each other, and what is known of them. A node is named by its place among the URLs. */
export interface ComparedNodes {
  /** One for each URL, in their order. */
  readonly peers: readonly NodePeer[]
  /** The contracts that are followed. */
  readonly addresses: readonly Address[]
  readonly suspected: Suspects
  readonly ledger: ReadingLedger
  readonly samples: SampleTurns
  readonly followed: FollowedBlocks
}

/** Leaves a node alone that gave wrong logs, until it passes the check, and has the blocks that it gave read again. */
export async function leaveForWrongLogs(
  { ledger, suspected }: ComparedNodes,
  node: number,
  reason: string,
  passes: () => Promise<boolean>,
): Promise<void> {
  await ledger.queue(node)
  suspected.add(node, 'LOGS', reason, passes)
}

/** Leaves two nodes alone that contradict each other, until they agree: it is not known which is wrong. */
export function leaveBoth(
  { peers, samples, suspected }: ComparedNodes,
  nodes: readonly number[],
  reason: string,
  agree: () => Promise<boolean>,
): void {
  const hosts = nodes.map((node) => peers[node]?.host).join(' and ')
  for (const node of nodes) {
    samples.renew(node)
    suspected.add(node, 'CONTRADICTED', `${hosts}: ${reason}`, agree)
  }
}

/** Refuses what a suspect answered. It is asked only where no other node answers. @throws RpcError */
export function refuseSuspect({ peers, suspected }: ComparedNodes, node: number | undefined): void {
  if (node === undefined || peers.length === 1 || !suspected.isDistrusted(node)) return
  const others = suspected.list().map(({ node: host, reason }) => `${host}: ${reason}`)
  throw new RpcError('INCONSISTENT', `only nodes that have answered wrongly can be reached (${others.join('; ')})`)
}

/** Notes that what a node gave in a lane is what another node gives. Followed blocks that are still to be compared stay noted. */
export async function notePassed(
  { ledger, followed }: ComparedNodes,
  passed: { readonly node: number; readonly lane: 'FOLLOW' | 'FILL'; readonly block: number },
): Promise<void> {
  await ledger.pass({ ...passed, waiting: followed.lowestOf(passed.node) })
}
