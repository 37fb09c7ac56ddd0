import type { ChainConfig } from '../../chains/chains-file.ts'
import { followedTopics } from '../../contracts/decode-events.ts'
import { toQuantity } from '../../contracts/words.ts'
import { ZERO_ADDRESS } from '../../domain/address.ts'
import { RpcError } from '../../nodes/rpc-error.ts'
import { type CheckedFact, judgeOf, type Verdict } from './checked-fact.ts'
import { ask, type CheckedNode, findLast } from './checked-node.ts'

/** A node whose head is older than this, and than so many blocks, has stopped. */
const OLD_HEAD_SEC = 120
const OLD_HEAD_BLOCKS = 20
/** Wider ranges of logs are not tried. */
const MAX_RANGE_TRIED = 100_000

/** The parts of a block that are checked. */
interface Block {
  readonly number: number
  readonly timestampSec: number
}

/** Which blocks the node has. */
export interface NodeBlocks {
  readonly head: Block
  /** The lowest block whose state the node has; undefined where it does not even have that of its head. */
  readonly oldestState: number | undefined
}

/**
 * Checks the node itself: its head, `finalized`, batches, the widest range of logs, and how far back it has state.
 *
 * @returns undefined where it has no block at all
 * @throws RpcError when it does not answer
 */
export async function* checkNode(
  node: CheckedNode,
  config: ChainConfig,
  clock: () => Date,
): AsyncGenerator<CheckedFact, NodeBlocks | undefined> {
  // The client asks every node for its chain id first, and throws if it is another.
  const head = await readBlock(node, 'latest')
  yield fact('chain id', 'ok', String(config.chainId))
  if (head === undefined) {
    yield fact('head', 'wrong', 'it has no latest block')
    return undefined
  }
  yield judgeHead(head, config, clock())
  yield await checkFinalized(node, config, head)
  yield await checkBatches(node)
  if (config.contracts.length > 0) yield await checkLogRange(node, config, head.number)
  const oldestState = await findOldestState(node, head.number)
  yield describeArchive(head.number, oldestState)
  return { head, oldestState }
}

function fact(check: string, verdict: Verdict, detail: string): CheckedFact {
  return judgeOf(check, '-')(verdict, detail)
}

async function readBlock(node: CheckedNode, tag: string): Promise<Block | undefined> {
  const json = await ask(node, { method: 'eth_getBlockByNumber', params: [tag, false] })
  if (json === null || json instanceof RpcError) return undefined
  const { number, timestamp } = json as { number: string; timestamp: string }
  return { number: Number(number), timestampSec: Number(timestamp) }
}

function judgeHead({ number, timestampSec }: Block, { blockTimeSeconds }: ChainConfig, now: Date): CheckedFact {
  const ageSec = Math.round(now.getTime() / 1_000 - timestampSec)
  const isOld = ageSec > Math.max(OLD_HEAD_SEC, OLD_HEAD_BLOCKS * blockTimeSeconds)
  const why = isOld ? ': the node has stopped, or is catching up' : ''
  return fact('head', isOld ? 'wrong' : 'ok', `block ${number}, ${ageSec} s old${why}`)
}

async function checkFinalized(node: CheckedNode, { finality }: ChainConfig, head: Block): Promise<CheckedFact> {
  const block = await readBlock(node, 'finalized')
  const { useFinalizedTag, depth } = finality
  if (block === undefined) {
    const verdict = useFinalizedTag ? 'note' : 'ok'
    return fact('finalized', verdict, `it has no finalized block: a block is final ${depth} blocks below the head`)
  }
  const behind = `block ${block.number}, ${head.number - block.number} below the head`
  if (useFinalizedTag) return fact('finalized', 'ok', behind)
  return fact('finalized', 'note', `${behind}; the chains file does not use it, so the depth of ${depth} blocks counts`)
}

async function checkBatches(node: CheckedNode): Promise<CheckedFact> {
  const before = node.exchanges()
  const call = { method: 'eth_chainId', params: [] }
  await node.client.batch([call, call], node.signal)
  if (node.exchanges() - before === 1) return fact('batches', 'ok', 'it takes batches')
  return fact('batches', 'note', 'it refuses batches: following and back-filling are slower')
}

async function checkLogRange(node: CheckedNode, { contracts }: ChainConfig, head: number): Promise<CheckedFact> {
  const filter = { address: contracts.map(({ address }) => address), topics: [followedTopics] }
  let refusal = ''
  const takes = async (blocks: number): Promise<boolean> => {
    const range = { fromBlock: toQuantity(head - blocks + 1), toBlock: toQuantity(head) }
    const answer = await ask(node, { method: 'eth_getLogs', params: [{ ...filter, ...range }] }).catch(timeoutAsAnswer)
    if (answer instanceof RpcError) refusal = answer.message
    return !(answer instanceof RpcError)
  }
  const widest = Math.min(MAX_RANGE_TRIED, head + 1)
  if (await takes(widest)) return fact('log range', 'ok', `${widest} blocks or more`)
  if (!(await takes(1))) return fact('log range', 'wrong', refusal)
  const most = await findLast(1, widest - 1, takes)
  return fact('log range', 'note', `at most ${most} blocks at once: back-filling is slower`)
}

/** A range that takes too long counts as too wide. */
function timeoutAsAnswer(error: unknown): RpcError {
  if (error instanceof RpcError && error.kind === 'TIMEOUT') return error
  throw error
}

/** A node that has the balances of a block has its code and storage too, and every node can answer the balance of this address. */
async function findOldestState(node: CheckedNode, head: number): Promise<number | undefined> {
  const hasNoState = async (block: number): Promise<boolean> => {
    const answer = await ask(node, { method: 'eth_getBalance', params: [ZERO_ADDRESS, toQuantity(block)] })
    return answer instanceof RpcError || answer === null
  }
  if (!(await hasNoState(0))) return 0
  if (await hasNoState(head)) return undefined
  return (await findLast(0, head - 1, hasNoState)) + 1
}

function describeArchive(head: number, oldest: number | undefined): CheckedFact {
  if (oldest === 0) return fact('archive', 'ok', 'it has the state of every block')
  if (oldest === undefined) return fact('archive', 'wrong', 'it does not even have the state of its head')
  const effect = 'prices of older payments are searched in the rounds of the feeds'
  return fact('archive', 'note', `it has state from block ${oldest} on, ${head - oldest + 1} blocks; ${effect}`)
}
