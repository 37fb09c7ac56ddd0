import type { ChainConfig } from '../../chains/chains-file.ts'
import { followedTopics } from '../../contracts/decode-events.ts'
import { toQuantity } from '../../contracts/words.ts'
import { RpcError } from '../../nodes/rpc-error.ts'
import { ask, type CheckedFact, type CheckedNode, lastThat } from './checked-fact.ts'

/** A head that is older than this, and than so many blocks, is that of a node which has stopped. */
const OLD_HEAD_SEC = 120
const OLD_HEAD_BLOCKS = 20
/** Wider ranges than this are not asked for. */
const WIDEST_RANGE = 100_000
const ZERO_ADDRESS = `0x${'0'.repeat(40)}`

/** A block as far as it is looked at. */
interface Block {
  readonly number: number
  readonly timestampSec: number
}

/** What the other checks build on. */
export interface NodeGround {
  readonly head: Block
  /** The lowest block whose state the node has; undefined where it has not even that of its head. */
  readonly oldestState: number | undefined
}

/**
 * Looks at the node itself: its head, `finalized`, lists of calls, how wide a range of logs may be and how far back it has state.
 *
 * @returns undefined where it has no block at all
 * @throws RpcError when it does not answer
 */
export async function* checkNode(
  node: CheckedNode,
  config: ChainConfig,
  clock: () => Date,
): AsyncGenerator<CheckedFact, NodeGround | undefined> {
  // The client asks every node for its chain id first, and fails where it is another.
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

function fact(check: string, verdict: CheckedFact['verdict'], detail: string): CheckedFact {
  return { check, subject: '-', verdict, detail }
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
    return fact('finalized', verdict, `it has no finalized block: one is final ${depth} blocks beneath the head`)
  }
  const behind = `block ${block.number}, ${head.number - block.number} beneath the head`
  if (useFinalizedTag) return fact('finalized', 'ok', behind)
  return fact('finalized', 'note', `${behind}; the chains file does not use it, so the depth of ${depth} blocks counts`)
}

async function checkBatches(node: CheckedNode): Promise<CheckedFact> {
  const before = node.exchanges()
  const call = { method: 'eth_chainId', params: [] }
  await node.client.batch([call, call], node.signal)
  if (node.exchanges() - before === 1) return fact('batches', 'ok', 'it takes lists of calls')
  return fact('batches', 'note', 'it takes single calls only: following and back-filling are slower')
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
  const widest = Math.min(WIDEST_RANGE, head + 1)
  if (await takes(widest)) return fact('log range', 'ok', `${widest} blocks or more`)
  if (!(await takes(1))) return fact('log range', 'wrong', refusal)
  const most = await lastThat(1, widest - 1, takes)
  return fact('log range', 'note', `${most} blocks at once, more is refused: back-filling takes the longer`)
}

/** A range that takes too long is too wide. */
function timeoutAsAnswer(error: unknown): RpcError {
  if (error instanceof RpcError && error.kind === 'TIMEOUT') return error
  throw error
}

/** Balances are there as long as code and storage are, and every node knows one of this address. */
async function findOldestState(node: CheckedNode, head: number): Promise<number | undefined> {
  const hasNoState = async (block: number): Promise<boolean> => {
    const answer = await ask(node, { method: 'eth_getBalance', params: [ZERO_ADDRESS, toQuantity(block)] })
    return answer instanceof RpcError || answer === null
  }
  if (!(await hasNoState(0))) return 0
  if (await hasNoState(head)) return undefined
  return (await lastThat(0, head - 1, hasNoState)) + 1
}

function describeArchive(head: number, oldest: number | undefined): CheckedFact {
  if (oldest === 0) return fact('archive', 'ok', 'it has the state of every block')
  if (oldest === undefined) return fact('archive', 'wrong', 'it does not even have the state of its head')
  const effect = 'prices of older payments are searched among the rounds of the feeds'
  return fact('archive', 'note', `it has state from block ${oldest} on, ${head - oldest + 1} blocks; ${effect}`)
}
