import type { RpcLog } from '../../contracts/decode-events.ts'
import type { Hex } from '../../domain/hex.ts'
import type { BlockHeader } from '../read/chain-reader.ts'

/** A followed block, as one node gave it. */
export interface FollowedBlock {
  readonly hash: Hex
  /** By its place among the URLs. */
  readonly node: number
  readonly logs: readonly RpcLog[]
}

export type FollowedBlocks = ReturnType<typeof createFollowedBlocks>

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
  const [oldest] = map.keys()
  if (map.size > max && oldest !== undefined) map.delete(oldest)
}
