import type { Knex } from 'knex'
import type { Address } from '../../domain/address.ts'
import { RpcError } from '../../nodes/rpc-error.ts'
import type { NodePeer } from '../chain/open-chain.ts'
import type { ChainNodes } from '../verify/chain-nodes.ts'
import type { BloomCheck } from './bloom-check.ts'
import type { FollowedBlocks } from './followed-blocks.ts'
import type { GivenBlocks } from './given-blocks.ts'
import type { NodeFault, SetAside } from './set-aside.ts'

/** The nodes of one chain, and what is known of their answers. A node is named by its place among the URLs. */
export interface TrustedNodes {
  readonly knex: Knex
  /** CAIP-2. */
  readonly chainId: string
  /** One for each URL, in their order. */
  readonly peers: readonly NodePeer[]
  /** The contracts that are followed. */
  readonly addresses: readonly Address[]
  readonly factories: ReadonlySet<Address>
  /** Of back-fill's ranges, one in this many is compared, and of followed blocks runs of this many; 0: none. */
  readonly sampleLogs: number
  readonly aside: SetAside
  readonly given: GivenBlocks
  readonly followed: FollowedBlocks
  readonly blooms: BloomCheck
  /** All nodes, to be asked for proofs. */
  readonly openNodes: (signal: AbortSignal | undefined) => ChainNodes
}

/** Sets a node aside that answered wrongly. All that it gave since it was last compared counts as wrong. */
export async function blame(
  { given, aside }: Pick<TrustedNodes, 'given' | 'aside'>,
  node: number,
  fault: Exclude<NodeFault, 'STALE'>,
  reason: string,
): Promise<void> {
  await given.countAsWrong(node)
  aside.add(node, fault, reason)
}

/** Refuses what a node answered that is set aside. It is asked only where no other node answers. @throws RpcError */
export function refuseAside({ peers, aside }: TrustedNodes, node: number | undefined): void {
  if (node === undefined || peers.length === 1 || !aside.isDistrusted(node)) return
  const others = aside.list().map(({ node: host, reason }) => `${host}: ${reason}`)
  throw new RpcError('INCONSISTENT', `only nodes that have answered wrongly can be reached (${others.join('; ')})`)
}
