import type { RpcLog } from '../../contracts/decode-events.ts'
import type { Address } from '../../domain/address.ts'
import type { Hex } from '../../domain/hex.ts'
import { ignoreRpcError } from '../../nodes/rpc-error.ts'
import type { ChainNodes } from '../verify/chain-nodes.ts'
import { readBlocks } from '../verify/read-blocks.ts'
import { type Header, readHeaders } from '../verify/read-headers.ts'

/** What is to be proven of a block. */
interface WantedProof {
  readonly number: number
  /** Absent: that on which all nodes agree. */
  readonly hash?: Hex | undefined
  readonly addresses: readonly Address[]
  readonly factories: ReadonlySet<Address>
  /** Whether receipts without proof are believed where nothing contradicts them. */
  readonly isProofNeeded: boolean
}

/** The followed logs of a block by its receipts. @returns undefined where no node proves them and no two agree */
export async function proveBlock(
  nodes: ChainNodes,
  { number, hash, addresses, factories, isProofNeeded }: WantedProof,
): Promise<readonly RpcLog[] | undefined> {
  const reported = await Promise.all(Array.from({ length: nodes.count }, (_, node) => readOne(nodes, node, number)))
  const hashes = new Set(reported.flatMap((header) => header?.hash ?? []))
  if (hash === undefined && hashes.size !== 1) return undefined
  const node = reported.findIndex((header) => header !== undefined && header.hash === (hash ?? header.hash))
  const header = reported[node]
  if (header === undefined) return undefined
  const startOf = new Map(addresses.map((address) => [address, 0]))
  const read = await readBlocks({ nodes, startOf, factories, isProofNeeded }, { headers: [header], node }).catch(
    ignoreRpcError,
  )
  return read?.uncertain.size === 0 ? read.logs : undefined
}

async function readOne(nodes: ChainNodes, node: number, number: number): Promise<Header | undefined> {
  const headers = await readHeaders(nodes, node, { from: number, to: number }).catch(ignoreRpcError)
  return headers?.[0]
}
