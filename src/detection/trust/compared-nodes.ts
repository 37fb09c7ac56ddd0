import type { Address } from '../../domain/address.ts'
import { RpcError } from '../../nodes/rpc-error.ts'
import type { NodePeer } from '../open-chain.ts'
import type { FollowedBlocks } from './followed-blocks.ts'
import type { ReadingLedger } from './reading-ledger.ts'
import type { SampleTurns } from './sample-turns.ts'
import type { Suspects } from './suspects.ts'

/** The nodes of one chain that are compared with each other, and what is remembered of them. A node is named by its place among the URLs. */
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

/** A node gave wrong logs: what it gave is read again, and it is left until it passes the check. */
export async function leaveForItsLogs(
  { ledger, suspected }: ComparedNodes,
  node: number,
  reason: string,
  passes: () => Promise<boolean>,
): Promise<void> {
  await ledger.queue(node)
  suspected.find(node, 'LOGS', reason, passes)
}

/** Two nodes differ, and neither is known to be wrong: both are left until they agree. */
export function leaveBoth(
  { peers, samples, suspected }: ComparedNodes,
  nodes: readonly number[],
  reason: string,
  agree: () => Promise<boolean>,
): void {
  const hosts = nodes.map((node) => peers[node]?.host).join(' and ')
  for (const node of nodes) {
    samples.renew(node)
    suspected.find(node, 'CONTRADICTED', `${hosts}: ${reason}`, agree)
  }
}

/** A node that was found out is asked only where no other answers, and is not believed then either. @throws RpcError */
export function refuseSuspect({ peers, suspected }: ComparedNodes, node: number | undefined): void {
  if (node === undefined || peers.length === 1 || !suspected.isDistrusted(node)) return
  const others = suspected.list().map(({ node: host, reason }) => `${host}: ${reason}`)
  throw new RpcError('INCONSISTENT', `only nodes answer that were found to answer wrongly (${others.join('; ')})`)
}

/** Notes that what a node gave in a lane equals what another gives. Blocks that it followed and that are still to be compared stay noted. */
export async function notePassed(
  { ledger, followed }: ComparedNodes,
  passed: { readonly node: number; readonly lane: 'FOLLOW' | 'FILL'; readonly block: number },
): Promise<void> {
  await ledger.pass({ ...passed, waiting: followed.lowestOf(passed.node) })
}
