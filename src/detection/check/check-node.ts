import type { ChainConfig } from '../../chains/chains-file.ts'
import { followedTopics } from '../../contracts/decode-events.ts'
import { toQuantity } from '../../contracts/words.ts'
import { ZERO_ADDRESS } from '../../domain/address.ts'
import { RpcError } from '../../nodes/rpc-error.ts'
import { findLast } from '../read/find-last.ts'
import { ask, type CheckedFact, type CheckedNode, judgeOf, type Verdict } from './checked-node.ts'

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
  const batch = await checkBatches(node)
  yield batch.fact
  const range = config.contracts.length > 0 ? await checkLogRange(node, config, head.number) : undefined
  if (range !== undefined) yield range.fact
  const rate = await checkRate(node)
  yield rate.fact
  if (range?.blocks !== undefined) {
    yield tellCost(config, head, { blocks: range.blocks, batch: batch.calls, perSecond: rate.perSecond })
  }
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
  if (useFinalizedTag && block.number >= head.number) {
    return fact('finalized', 'note', `${behind}: every block counts as final at once, so a reorg would stop the chain`)
  }
  if (useFinalizedTag) return fact('finalized', 'ok', behind)
  return fact('finalized', 'note', `${behind}; the chains file does not use it, so the depth of ${depth} blocks counts`)
}

/** Larger batches are not tried, since none are sent. */
const MAX_BATCH_TRIED = 100

/** Finds the largest batch that the node takes, by doubling, then between the last two. */
async function checkBatches(node: CheckedNode): Promise<{ fact: CheckedFact; calls: number }> {
  const takes = async (calls: number): Promise<boolean> => {
    const before = node.exchanges()
    const call = { method: 'eth_chainId', params: [] }
    await node.client.batch(
      Array.from({ length: calls }, () => call),
      node.signal,
    )
    return node.exchanges() - before === 1
  }
  let taken = 1
  let refused = MAX_BATCH_TRIED + 1
  for (let calls = 2; calls <= MAX_BATCH_TRIED && refused > MAX_BATCH_TRIED; calls = Math.min(calls * 4, 100)) {
    if (await takes(calls)) taken = calls
    else refused = calls
    if (calls === MAX_BATCH_TRIED) break
  }
  if (taken === MAX_BATCH_TRIED) return { fact: fact('batches', 'ok', `it takes ${taken} calls at once`), calls: taken }
  // What was tried has taught the client how many calls the node takes.
  const calls = Math.max(1, Math.min(refused - 1, Math.max(taken, node.client.limitsOf(0).batchSize())))
  const why = 'following and back-filling are slower'
  const detail = calls === 1 ? `it refuses batches: ${why}` : `it takes about ${calls} calls at once: ${why}`
  return { fact: fact('batches', 'note', detail), calls }
}

/** Calls that are made to see a rate. They end early, so that the check uses up little of what the node allows. */
const RATE_CALLS = 20

/** Checks whether the node refuses a few calls in a row. A rate that the chains file states is believed. */
export async function checkRate(node: CheckedNode): Promise<{ fact: CheckedFact; perSecond: number | undefined }> {
  const limits = node.client.limitsOf(0)
  const { requestsPerSecond } = limits.declared
  if (requestsPerSecond !== undefined) {
    const detail = `${requestsPerSecond} requests a second, as the chains file says`
    return { fact: fact('rate', 'ok', detail), perSecond: requestsPerSecond }
  }
  for (let made = 0; made < RATE_CALLS && limits.rate() === undefined; made++) {
    await ask(node, { method: 'eth_chainId', params: [] })
  }
  const rate = limits.rate()
  if (rate === undefined) {
    return { fact: fact('rate', 'ok', `${RATE_CALLS} calls in a row were not refused`), perSecond: undefined }
  }
  const perSecond = Math.max(0.1, Math.round(rate.perSecond * 10) / 10)
  const unit = rate.unit === 'CALLS' ? 'calls, those of a batch counted' : 'requests'
  const detail = `it refused more than about ${perSecond} ${unit} a second: set requestsPerSecond to what your plan allows`
  return { fact: fact('rate', 'note', detail), perSecond }
}

/** Time of a request that nothing limits. */
const USUAL_REQUEST_SEC = 0.1

/** Says how long reading the chain from its first block takes. */
function tellCost(
  { contracts, startBlock }: ChainConfig,
  head: Block,
  {
    blocks,
    batch,
    perSecond,
  }: { readonly blocks: number; readonly batch: number; readonly perSecond: number | undefined },
): CheckedFact {
  const from = startBlock ?? Math.min(...contracts.map(({ fromBlock }) => fromBlock))
  const ranges = Math.ceil(Math.max(0, head.number - from + 1) / blocks)
  const requests = ranges * (batch > 1 ? 1 : 2)
  const seconds = requests * (perSecond === undefined ? USUAL_REQUEST_SEC : 1 / perSecond)
  const rate = perSecond === undefined ? 'no rate seen' : `${perSecond} a second`
  const detail = `${blocks} blocks a call, ${rate}: ${ranges * 2} calls, ${textOf(seconds)} to catch up from block ${from}`
  return fact('cost', 'ok', detail)
}

/** 11,400 seconds: `3 h 10 min`. */
function textOf(seconds: number): string {
  const minutes = Math.ceil(seconds / 60)
  if (minutes < 2) return `${Math.ceil(seconds)} s`
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}

async function checkLogRange(
  node: CheckedNode,
  { contracts }: ChainConfig,
  head: number,
): Promise<{ fact: CheckedFact; blocks: number | undefined }> {
  const filter = { address: contracts.map(({ address }) => address), topics: [followedTopics] }
  let refusal = ''
  const takes = async (blocks: number): Promise<boolean> => {
    const range = { fromBlock: toQuantity(head - blocks + 1), toBlock: toQuantity(head) }
    const answer = await ask(node, { method: 'eth_getLogs', params: [{ ...filter, ...range }] }).catch(timeoutAsAnswer)
    if (answer instanceof RpcError) refusal = answer.message
    return !(answer instanceof RpcError)
  }
  const widest = Math.min(MAX_RANGE_TRIED, head + 1)
  if (await takes(widest)) return { fact: fact('log range', 'ok', `${widest} blocks or more`), blocks: widest }
  if (!(await takes(1))) return { fact: fact('log range', 'wrong', refusal), blocks: undefined }
  const most = await findLast(1, widest - 1, takes)
  const detail = `at most ${most} blocks at once: back-filling is slower`
  return { fact: fact('log range', 'note', detail), blocks: most }
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
