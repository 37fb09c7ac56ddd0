import type { ChainConfig } from '../../chains/chains-file.ts'
import { followedTopics } from '../../contracts/decode-events.ts'
import { toQuantity } from '../../contracts/words.ts'
import { ZERO_ADDRESS } from '../../domain/address.ts'
import { RpcError } from '../../nodes/rpc-error.ts'
import { ask, type CheckedFact, type CheckedNode, judgeOf, type Verdict } from './checked-node.ts'

/** A node whose head is older than this, and than so many blocks, has stopped. */
const OLD_HEAD_SEC = 120
const OLD_HEAD_BLOCKS = 20
/** The most calls in a batch, and blocks in a range of logs, that the service ever asks for. */
const MAX_BATCH = 100
const MAX_RANGE = 100_000

/** The parts of a block that are checked. */
interface Block {
  readonly number: number
  readonly timestampSec: number
}

/**
 * Checks the node itself: its head, `finalized`, batches, ranges of logs, and whether it has the state of the first block that is read.
 *
 * @returns the number of its head; undefined where it has no block at all
 * @throws RpcError when it does not answer
 */
export async function* checkNode(
  node: CheckedNode,
  config: ChainConfig,
  clock: () => Date,
): AsyncGenerator<CheckedFact, number | undefined> {
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
  if (config.contracts.length > 0) {
    yield await checkLogRange(node, config, head.number)
    yield await checkArchive(node, config)
  }
  return head.number
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
  if (useFinalizedTag && block.number >= head.number) {
    return fact('finalized', 'note', `${behind}: every block counts as final at once, so a reorg would stop the chain`)
  }
  if (useFinalizedTag) return fact('finalized', 'ok', behind)
  return fact('finalized', 'note', `${behind}; the chains file does not use it, so the depth of ${depth} blocks counts`)
}

async function checkBatches(node: CheckedNode): Promise<CheckedFact> {
  const calls = Array.from({ length: MAX_BATCH }, () => ({ method: 'eth_chainId', params: [] }))
  await node.client.batch(calls, node.signal)
  // What was refused has taught the client how many calls the node takes.
  const size = node.client.limitsOf(0).batchSize()
  if (size >= MAX_BATCH) return fact('batches', 'ok', `it takes ${size} calls at once`)
  const taken = size === 1 ? 'it refuses batches' : `it takes about ${size} calls at once`
  return fact('batches', 'note', `${taken}: following and back-filling are slower`)
}

async function checkLogRange(node: CheckedNode, { contracts }: ChainConfig, head: number): Promise<CheckedFact> {
  const filter = { address: contracts.map(({ address }) => address), topics: [followedTopics] }
  const refusalOf = async (blocks: number): Promise<string | undefined> => {
    const range = { fromBlock: toQuantity(head - blocks + 1), toBlock: toQuantity(head) }
    const answer = await ask(node, { method: 'eth_getLogs', params: [{ ...filter, ...range }] }).catch(timeoutAsAnswer)
    return answer instanceof RpcError ? answer.message : undefined
  }
  const widest = Math.min(MAX_RANGE, head + 1)
  const refusal = await refusalOf(widest)
  if (refusal === undefined) return fact('log range', 'ok', `it takes ${widest} blocks`)
  const refusalOfOne = await refusalOf(1)
  if (refusalOfOne !== undefined) return fact('log range', 'wrong', refusalOfOne)
  return fact('log range', 'note', `it refuses ${widest} blocks, so back-filling is slower: ${refusal}`)
}

/** A range that takes too long counts as too wide. */
function timeoutAsAnswer(error: unknown): RpcError {
  if (error instanceof RpcError && error.kind === 'TIMEOUT') return error
  throw error
}

/** A node that has the balances of a block has its code and storage too, and every node can answer the balance of this address. */
async function checkArchive(node: CheckedNode, { contracts, startBlock }: ChainConfig): Promise<CheckedFact> {
  const first = Math.max(startBlock ?? 0, Math.min(...contracts.map(({ fromBlock }) => fromBlock)))
  const answer = await ask(node, { method: 'eth_getBalance', params: [ZERO_ADDRESS, toQuantity(first)] })
  if (!(answer instanceof RpcError) && answer !== null)
    return fact('archive', 'ok', `it has the state of block ${first}`)
  const effect = 'prices of older payments are searched in the rounds of the feeds'
  return fact('archive', 'note', `it has no state of block ${first}: ${effect}`)
}
