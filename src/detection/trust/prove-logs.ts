import { blockHashOf, type RpcHeader } from '../../contracts/block-hash.ts'
import { followedTopics, type RpcLog } from '../../contracts/decode-events.ts'
import { type EncodableReceipt, receiptsRootOf } from '../../contracts/receipts-root.ts'
import { toQuantity } from '../../contracts/words.ts'
import type { Hex } from '../../domain/hex.ts'
import { resultIn } from '../../nodes/json-rpc.ts'
import type { RpcClient } from '../../nodes/rpc-client.ts'

type RpcReceipt = EncodableReceipt & { readonly transactionHash?: unknown; readonly logs: readonly RpcLog[] }

/** What one node says of a block. */
interface Testimony {
  readonly header: RpcHeader
  readonly receipts: readonly RpcReceipt[]
}

/** A block whose receipts have the root of its header. */
interface ProvenBlock {
  /** Its followed logs. */
  readonly logs: readonly RpcLog[]
  /** All receipts, as JSON. The root proves their logs and outcomes, but neither sender nor price nor hash of a transaction. */
  readonly receipts: readonly RpcReceipt[]
}

/**
 * Reads the followed logs of a block with a proof: receipts that have the root of a header whose hash is computed, or on which two nodes agree.
 *
 * @returns undefined where no node gives such receipts
 */
export async function proveLogs(
  clients: readonly RpcClient[],
  block: number,
  addresses: ReadonlySet<string>,
  signal: AbortSignal | undefined,
): Promise<ProvenBlock | undefined> {
  const asked = await Promise.all(clients.map((client) => ask(client, block, signal)))
  const headers = asked.flatMap((testimony) => (testimony === undefined ? [] : [testimony.header]))
  if (new Set(headers.map((header) => header['hash'])).size !== 1) return undefined
  for (const testimony of asked) {
    if (testimony === undefined || !isCertain(testimony.header, headers)) continue
    if (rootOf(testimony) !== testimony.header['receiptsRoot']) continue
    const receipts = placeLogs(testimony)
    return { receipts, logs: followedLogs(receipts, addresses) }
  }
  return undefined
}

/** Adds to each log its block, transaction and index, which the root does not prove: from the header, and by counting. */
function placeLogs({ header, receipts }: Testimony): RpcReceipt[] {
  const { number, hash, timestamp } = header
  const block = { blockNumber: String(number), blockHash: String(hash), blockTimestamp: String(timestamp) }
  let index = 0
  return receipts.map((receipt) => {
    const transactionHash = String(receipt.transactionHash)
    const logs = receipt.logs.map((log) => ({ ...log, ...block, transactionHash, logIndex: toQuantity(index++) }))
    return { ...receipt, ...block, logs }
  })
}

async function ask(client: RpcClient, block: number, signal: AbortSignal | undefined): Promise<Testimony | undefined> {
  const number = toQuantity(block)
  const calls = [
    { method: 'eth_getBlockByNumber', params: [number, false] },
    { method: 'eth_getBlockReceipts', params: [number] },
  ]
  try {
    const [header, receipts] = await client.batch(calls, signal)
    const given = { header: resultIn(header), receipts: resultIn(receipts) }
    if (typeof given.header !== 'object' || given.header === null) return undefined
    const list = Array.isArray(given.receipts) ? (given.receipts as Testimony['receipts']) : []
    return { header: given.header as RpcHeader, receipts: list }
  } catch {
    signal?.throwIfAborted()
    return undefined
  }
}

function isCertain(header: RpcHeader, all: readonly RpcHeader[]): boolean {
  const agreeing = all.filter((each) => each['receiptsRoot'] === header['receiptsRoot'])
  return agreeing.length > 1 || hashOf(header) === header['hash']
}

/** The hash of a header by its fields; undefined where they cannot be encoded. */
function hashOf(header: RpcHeader): Hex | undefined {
  try {
    return blockHashOf(header)
  } catch {
    return undefined
  }
}

/** Receipts of an unknown form have no root. */
function rootOf({ receipts }: Testimony): Hex | undefined {
  try {
    return receiptsRootOf(receipts)
  } catch {
    return undefined
  }
}

/** The logs in receipts that following would ask for: of these contracts, with a followed topic. */
export function followedLogs(
  receipts: readonly { readonly logs: readonly RpcLog[] }[],
  addresses: ReadonlySet<string>,
): RpcLog[] {
  const topics = new Set<string>(followedTopics)
  return receipts
    .flatMap(({ logs }) => logs)
    .filter((log) => addresses.has(log.address.toLowerCase()) && topics.has((log.topics[0] ?? '').toLowerCase()))
}
