import type { Knex } from 'knex'
import type { RpcLog } from '../../contracts/decode-events.ts'
import type { Address } from '../../domain/address.ts'
import { dropOldest } from '../../domain/collections.ts'
import type { Hex } from '../../domain/hex.ts'
import { RpcError } from '../../nodes/rpc-error.ts'
import type { NodePeer } from '../chain/open-chain.ts'
import type { BlockHeader } from '../read/chain-reader.ts'
import type { ChainNodes } from '../verify/chain-nodes.ts'
import type { NodeFault, SetAside } from './set-aside.ts'
import { addUnproven, changeState, passUnproven } from './sql/unproven-blocks-repository.ts'

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

/** Who reads blocks: following or back-fill. */
export type ReadingLane = 'FOLLOW' | 'FILL'

const STATES = { FOLLOW: 'FOLLOWED', FILL: 'FILLED' } as const

/** Blocks that a node gave, both ends included. */
interface Given {
  /** By its place among the URLs. */
  readonly node: number
  readonly lane: ReadingLane
  readonly from: number
  readonly to: number
}

/** Which node gave which blocks since it was last compared, so that they can be proven if it turns out to be wrong. Stored, since a process may be killed. */
type GivenBlocks = ReturnType<typeof createGivenBlocks>

/** Makes the memory of one chain. @param hosts - of its nodes, in the order of the URLs */
export function createGivenBlocks(knex: Knex, chainId: string, hosts: readonly string[]) {
  /** Nodes of which it is stored that following reads from them. */
  const reading = new Set<number>()
  let highest = 0
  const hostOf = (node: number) => hosts[node] ?? ''

  return {
    /** Notes which node gives blocks. Call it before they are written, so that it is known whenever the process is killed. */
    async note({ node, lane, from, to }: Given, isWrong = false): Promise<void> {
      highest = Math.max(highest, to)
      if (isWrong) return addUnproven(knex, chainId, { node: hostOf(node), state: 'WRONG', from, to })
      if (lane === 'FILL') return addUnproven(knex, chainId, { node: hostOf(node), state: STATES.FILL, from, to })
      if (reading.has(node)) return
      await addUnproven(knex, chainId, { node: hostOf(node), state: STATES.FOLLOW, from })
      reading.add(node)
    },
    /** What a node gave in a lane, up to a block, is what another node gives. */
    pass: ({ node, lane, to }: Omit<Given, 'from'>): Promise<void> =>
      passUnproven(knex, chainId, { node: hostOf(node), state: STATES[lane], to }),
    /** Blocks that could not be compared are to be proven. */
    doubt: ({ node, from, to }: Omit<Given, 'lane'>): Promise<void> =>
      addUnproven(knex, chainId, { node: hostOf(node), state: 'UNCOMPARED', from, to }),
    /** All that a node gave since it was last compared counts as wrong. */
    async countAsWrong(node: number): Promise<void> {
      // Before the rows are taken, since what comes meanwhile has to be noted again.
      reading.delete(node)
      const from = ['FOLLOWED', 'FILLED', 'UNCOMPARED'] as const
      await changeState(knex, chainId, { node: hostOf(node), from, to: 'WRONG', highest })
    },
    /** What earlier processes followed last is to be proven: it is unknown whether it was compared. */
    async takeOver(): Promise<void> {
      reading.clear()
      await changeState(knex, chainId, { from: ['FOLLOWED'], to: 'UNCOMPARED' })
    },
  }
}

/** A followed block, as one node gave it. */
interface FollowedBlock {
  readonly hash: Hex
  /** By its place among the URLs. */
  readonly node: number
  readonly logs: readonly RpcLog[]
}

type FollowedBlocks = ReturnType<typeof createFollowedBlocks>

/** More blocks than any chain has between its head and its last final block: Arbitrum has about 4,800. */
const MAX_REMEMBERED = 10_000
/** Headers are needed only until the logs of their blocks are read. */
const MAX_HEADERS = 1_000

/** Makes the memory of one chain: blocks that following has read, until they are final and were compared with another node. */
export function createFollowedBlocks() {
  const headers = new Map<Hex, BlockHeader>()
  const given = new Map<number, FollowedBlock>()
  return {
    noteHeader: (header: BlockHeader) => remember(headers, MAX_HEADERS, header.hash, header),
    /** @returns undefined where following did not read it, or long ago */
    headerOf: (hash: Hex) => headers.get(hash),
    note: (number: number, block: FollowedBlock) => remember(given, MAX_REMEMBERED, number, block),
    /** Those up to a block, lowest first. */
    upTo: (block: number) => [...given].filter(([number]) => number <= block).toSorted(([a], [b]) => a - b),
    forget(numbers: readonly number[]): void {
      for (const number of numbers) given.delete(number)
    },
    /** @returns the number of the lowest block that a node gave; Infinity where there is none */
    lowestOf: (node: number) =>
      Math.min(...[...given].flatMap(([number, each]) => (each.node === node ? [number] : []))),
  }
}

/** Sets an entry, and deletes the oldest where there are too many. */
function remember<K, V>(map: Map<K, V>, max: number, key: K, value: V): void {
  map.delete(key)
  map.set(key, value)
  dropOldest(map, max)
}
