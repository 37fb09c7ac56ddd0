import type { RpcLog } from '../../contracts/decode-events.ts'
import type { Address } from '../../domain/address.ts'
import type { Hex } from '../../domain/hex.ts'
import { ignoreRpcError, RpcError } from '../../nodes/rpc-error.ts'
import type { BlockRange } from '../read/chain-reader.ts'
import { type ChainNodes, type Header, readHeaders } from '../verify/chain-nodes.ts'
import { readBlocks } from '../verify/read-blocks.ts'
import { blame, type TrustedNodes } from './trusted-nodes.ts'

/** The logs that a node gave for final blocks. */
export interface GivenLogs {
  readonly node: number
  readonly range: BlockRange
  readonly logs: readonly RpcLog[]
  /** The hash of a block as the node gave it, where that is known. */
  readonly hashOf: (block: number) => Hex | undefined
}

/**
 * What a second node says:
 * - `NOTHING`: there is none that is trusted, or it does not answer
 * - `SAME`: the same logs up to a block
 * - `OTHER_BLOCK`: it has another block
 * - `OTHER_LOGS`: it has other logs; `isRight` says whether the first node is known to be right
 */
export type Comparison =
  | { readonly kind: 'NOTHING' }
  | { readonly kind: 'SAME'; readonly to: number }
  | { readonly kind: 'OTHER_BLOCK'; readonly second: number; readonly block: number }
  | { readonly kind: 'OTHER_LOGS'; readonly block: number; readonly isRight: boolean }

/** Compares logs with those of a second node, and sets those aside that are wrong. */
export async function compareLogs(
  nodes: TrustedNodes,
  given: GivenLogs,
  signal: AbortSignal | undefined,
): Promise<Comparison> {
  const { node, range, hashOf } = given
  const second = chooseSecond(nodes, node)
  const other = second === undefined ? undefined : await askSecond(nodes, second, range, signal)
  if (second === undefined || other === undefined) return { kind: 'NOTHING' }
  const { to } = other
  if (other.last.hash !== (hashOf(to) ?? other.last.hash)) return { kind: 'OTHER_BLOCK', second, block: to }
  const logs = logsWithin(given.logs, { from: range.from, to })
  const block = firstDifference(logs, other.logs)
  if (block === undefined) return { kind: 'SAME', to }
  const statements = new Map([
    [node, logs],
    [second, other.logs],
  ])
  const wrong = await judge(nodes, { ...range, from: block, to: block }, statements, signal)
  return { kind: 'OTHER_LOGS', block, isRight: !wrong.includes(node) }
}

/** Decides by proof which nodes give wrong logs of a block, and sets them aside; without proof all of them. @returns those */
async function judge(
  nodes: TrustedNodes,
  { from: block, to, addresses = nodes.addresses }: BlockRange,
  statements: ReadonlyMap<number, readonly RpcLog[]>,
  signal: AbortSignal | undefined,
): Promise<number[]> {
  const { peers, factories } = nodes
  const truth = await proveBlock(nodes.openNodes(signal), { number: block, addresses, factories, isProofNeeded: true })
  if (truth === undefined) {
    const hosts = [...statements.keys()].map((node) => peers[node]?.host).join(' and ')
    const reason = `${hosts}: they give different logs of block ${block}, and neither can prove its own`
    for (const node of statements.keys()) await blame(nodes, node, 'CONTRADICTED', reason)
    return [...statements.keys()]
  }
  const isWrong = (logs: readonly RpcLog[]) =>
    firstDifference(logsWithin(logs, { from: block, to }), truth) !== undefined
  const wrong = [...statements].filter(([, logs]) => isWrong(logs))
  for (const [node] of wrong)
    await blame(nodes, node, 'LOGS', `it gives other logs of block ${block} than the chain has`)
  return wrong.map(([node]) => node)
}

/** Chooses at random a node to compare one with. @returns undefined where no other node is trusted */
function chooseSecond({ peers, aside }: TrustedNodes, node: number): number | undefined {
  const others = peers.flatMap((_, index) => (index === node || aside.has(index) ? [] : [index]))
  return others[Math.floor(Math.random() * others.length)]
}

const MAX_HALVINGS = 8

/** Asks a second node for the logs of a range, or of its first half where that is too much. @returns undefined where it does not answer */
async function askSecond({ peers }: TrustedNodes, second: number, range: BlockRange, signal: AbortSignal | undefined) {
  let { to } = range
  for (let halvings = 0; halvings < MAX_HALVINGS; halvings++) {
    try {
      const read = await peers[second]?.reader.logsInRange({ ...range, to }, signal)
      return read?.last && { logs: read.logs, last: read.last, to }
    } catch (error) {
      signal?.throwIfAborted()
      const isTooMuch = error instanceof RpcError && (error.kind === 'TOO_LARGE' || error.kind === 'TIMEOUT')
      if (!isTooMuch || range.from === to) return undefined
      to = Math.floor((range.from + to) / 2)
    }
  }
  return undefined
}

/** Compares the logs that two nodes give of the same final blocks. No I/O. */

/** @returns the lowest block whose logs differ; undefined where all are the same */
export function firstDifference(one: readonly RpcLog[], other: readonly RpcLog[]): number | undefined {
  const [ofOne, ofOther] = [byKey(one), byKey(other)]
  const onlyOne = [...ofOne].filter(([key]) => !ofOther.has(key))
  const onlyOther = [...ofOther].filter(([key]) => !ofOne.has(key))
  const blocks = [...onlyOne, ...onlyOther].map(([, block]) => block)
  return blocks.length === 0 ? undefined : Math.min(...blocks)
}

/** The logs of blocks `from` to `to`, both included. */
export function logsWithin(logs: readonly RpcLog[], { from, to }: { readonly from: number; readonly to: number }) {
  return logs.filter(({ blockNumber }) => Number(blockNumber) >= from && Number(blockNumber) <= to)
}

function byKey(logs: readonly RpcLog[]): Map<string, number> {
  return new Map(
    logs.map((log) => {
      const { address, topics, data, blockNumber, blockHash, transactionHash, logIndex } = log
      const place = [Number(blockNumber), blockHash, transactionHash, Number(logIndex)]
      return [[...place, address, topics.join(), data].join(' ').toLowerCase(), Number(blockNumber)]
    }),
  )
}

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
