import { type EncodableReceipt, receiptsRootOf } from '../../contracts/receipts-root.ts'
import { readQuantity, toQuantity } from '../../contracts/words.ts'
import { ZERO_ADDRESS } from '../../domain/address.ts'
import type { Hex } from '../../domain/hex.ts'
import { isObject, RpcError } from '../../nodes/rpc-error.ts'
import { type TransactionReceipt, toReceipt } from '../read/chain-reader.ts'
import { type ChainNodes, resultsOf } from './chain-nodes.ts'
import type { Header } from './read-headers.ts'

/**
 * How the receipts of a block are proved:
 *
 * - `ROOT`: they have the root that the block's header names
 * - `AGREED`: two nodes gave the same
 * - `NONE`: not at all; `why` says the reason
 */
export type Proof =
  | { readonly kind: 'ROOT' | 'AGREED' }
  | { readonly kind: 'NONE'; readonly why: string; readonly isContradicted: boolean }

export interface ProvenReceipts {
  readonly receipts: readonly TransactionReceipt[]
  readonly proof: Proof
  /** Hosts of nodes whose receipts do not have the root although another node's do. */
  readonly misreporting: readonly string[]
}

/** What one node answers. */
interface Answer {
  readonly host: string
  readonly receipts: readonly RawReceipt[]
  readonly hasRoot: boolean
}

type RawReceipt = EncodableReceipt & Readonly<Record<string, unknown>>

/**
 * Reads all receipts of a block from the first node whose receipts have the root of the header. Where none has it, for instance because the
 * chain encodes receipts in an unknown way, two nodes must give the same.
 *
 * @param isRootKnown - whether the header's receiptsRoot is certain
 * @throws RpcError when no node answers
 */
export async function readReceipts(nodes: ChainNodes, header: Header, isRootKnown: boolean): Promise<ProvenReceipts> {
  const answers: Answer[] = []
  let failure: RpcError | undefined
  for (const node of nodes.order()) {
    const answer = await readFrom(nodes, node, header).catch((error: unknown) => {
      if (!(error instanceof RpcError)) throw error
      failure ??= error
      return undefined
    })
    if (answer === undefined) continue
    if (isRootKnown && answer.hasRoot) {
      return {
        receipts: toReceipts(answer, header),
        proof: { kind: 'ROOT' },
        misreporting: answers.map(({ host }) => host),
      }
    }
    const same = answers.find((other) => contentOf(other) === contentOf(answer))
    if (same !== undefined) return { receipts: toReceipts(answer, header), proof: { kind: 'AGREED' }, misreporting: [] }
    answers.push(answer)
  }
  const [first] = answers
  if (first === undefined) throw failure ?? new RpcError('UNREACHABLE', 'the chain has no RPC URL')
  return { receipts: toReceipts(first, header), proof: explainDoubt(answers, isRootKnown), misreporting: [] }
}

function explainDoubt(answers: readonly Answer[], isRootKnown: boolean): Proof {
  const hosts = answers.map(({ host }) => host).join(' and ')
  if (answers.length > 1) {
    return {
      kind: 'NONE',
      why: `${hosts} give different receipts, and none has the block's root`,
      isContradicted: true,
    }
  }
  if (!isRootKnown) {
    const why = `the header's hash cannot be computed, and there is no second node that agrees with ${hosts}`
    return { kind: 'NONE', why, isContradicted: false }
  }
  const why = `the receipts of ${hosts} do not have the root that the block's header names: logs are missing or changed, or the chain encodes receipts in a way that is not known; add a second node to the chains file`
  return { kind: 'NONE', why, isContradicted: true }
}

async function readFrom(nodes: ChainNodes, node: number, header: Header): Promise<Answer> {
  const host = nodes.hostOf(node)
  const receipts = await readRaw(nodes, node, header)
  const { transactions } = header
  const isComplete =
    receipts.length === transactions.length &&
    receipts.every((receipt, place) => receipt['transactionHash'] === transactions[place])
  if (!isComplete)
    throw new RpcError('INCONSISTENT', `the receipts of block ${header.number} are not those of its transactions`, {
      host,
    })
  const counted = withoutStateSync(receipts)
  const hasRoot = [receipts, counted].some(
    (some) => receiptsRootOf(some) === header.receiptsRoot && isGasConsistent(some),
  )
  return { host, receipts, hasRoot }
}

/** At the end of some blocks, Polygon lists a state-sync transaction whose receipt is not in the root. It pays nobody. */
function withoutStateSync(receipts: readonly RawReceipt[]): readonly RawReceipt[] {
  const last = receipts.at(-1)
  return last?.['from'] === ZERO_ADDRESS && readQuantity(last['gasUsed']) === 0n ? receipts.slice(0, -1) : receipts
}

/** Whether each `gasUsed` is the step between two cumulative sums: only those sums are in the root. */
function isGasConsistent(receipts: readonly RawReceipt[]): boolean {
  let before = 0n
  return receipts.every(({ cumulativeGasUsed, gasUsed }) => {
    const after = readQuantity(cumulativeGasUsed) ?? 0n
    const isRight = readQuantity(gasUsed) === after - before
    before = after
    return isRight
  })
}

async function readRaw(nodes: ChainNodes, node: number, { hash, transactions }: Header): Promise<RawReceipt[]> {
  const [whole] = await nodes.ask(node, [{ method: 'eth_getBlockReceipts', params: [hash] }])
  const list = whole?.ok && Array.isArray(whole.result) ? whole.result : await readEach(nodes, node, transactions)
  return list.map((receipt) => checkReceipt(receipt, nodes.hostOf(node)))
}

async function readEach(nodes: ChainNodes, node: number, transactions: readonly Hex[]): Promise<unknown[]> {
  if (transactions.length === 0) return []
  const calls = transactions.map((hash) => ({ method: 'eth_getTransactionReceipt', params: [hash] }))
  return resultsOf(await nodes.ask(node, calls))
}

/** @throws RpcError INCONSISTENT where the value is no receipt */
function checkReceipt(value: unknown, host: string): RawReceipt {
  const isReceipt =
    isObject(value) &&
    typeof value['transactionHash'] === 'string' &&
    typeof value['from'] === 'string' &&
    typeof value['gasUsed'] === 'string' &&
    typeof value['cumulativeGasUsed'] === 'string' &&
    typeof value['logsBloom'] === 'string' &&
    Array.isArray(value['logs'])
  if (!isReceipt) throw new RpcError('INCONSISTENT', 'a receipt lacks a field', { host })
  return value as unknown as RawReceipt
}

function contentOf({ receipts }: Answer): string {
  return JSON.stringify(
    receipts.map(({ status, cumulativeGasUsed, logs }) => [
      status,
      cumulativeGasUsed,
      logs.map(({ address, topics, data }) => [address.toLowerCase(), topics, data]),
    ]),
  )
}

/** Numbers the logs and names their block: neither is in the root. */
function toReceipts({ receipts }: Answer, { number, hash, timestampSec }: Header): TransactionReceipt[] {
  const block = { blockNumber: toQuantity(number), blockHash: hash }
  const ofLog = { ...block, blockTimestamp: toQuantity(timestampSec) }
  let nextLog = 0
  return receipts.map((receipt) => {
    const transactionHash = receipt['transactionHash'] as Hex
    const logs = receipt.logs.map(({ address, topics, data }) => ({
      address,
      topics,
      data,
      ...ofLog,
      transactionHash,
      logIndex: toQuantity(nextLog++),
    }))
    return toReceipt({ ...receipt, ...block, to: receipt['to'] ?? null, logs }) as TransactionReceipt
  })
}
