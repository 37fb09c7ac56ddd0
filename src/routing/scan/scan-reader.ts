import type { ChainConfig } from '../../chains/chains-file.ts'
import {
  type ContractRead,
  createReadSet,
  decodeAggregate3,
  encodeAggregate3,
  type ReadSet,
} from '../../contracts/multicall.ts'
import { readQuantity } from '../../contracts/words.ts'
import type { Address } from '../../domain/address.ts'
import { type RpcAnswer, type RpcCall, resultIn } from '../../nodes/json-rpc.ts'
import { RpcError } from '../../nodes/rpc-error.ts'
import type { RpcNode } from '../../nodes/rpc-node.ts'
import type { ChainState, UsualReads } from './wallet-state.ts'

/** What is asked about one wallet. */
export interface Ask {
  readonly wallet: Address
  /** Beside the balances and prices of all the chain's tokens. */
  readonly reads: readonly ContractRead[]
}

/** A node's answer to several asks. */
export interface Reading {
  /** The time of the block from which everything was read. */
  readonly timestampSec: number
  /** In the order of the asks. */
  readonly states: readonly (ChainState | RpcError)[]
}

/**
 * Reads everything for several wallets of one chain through one URL, in one HTTP request; in several where that is too large for the node.
 *
 * @throws RpcError when no ask has its answer: the node is unreachable, on another chain, behind, or its answer cannot be right; the
 *   signal's reason when it fires
 */
export type ReadChain = (asks: readonly Ask[], signal: AbortSignal) => Promise<Reading>

interface ScanReaderOptions {
  readonly chain: ChainConfig
  readonly node: RpcNode
  readonly reads: UsualReads
  /** Milliseconds since 1970. */
  readonly clock: () => number
}

/** Blocks from which tips are read. */
const FEE_HISTORY_BLOCKS = 5

/** A head is stale when it is older than this and than this many usual blocks: some chains make blocks only for transactions. */
const STALE_HEAD_SECONDS = 300
const STALE_HEAD_BLOCKS = 20

const FEE_HISTORY_CALL: RpcCall = {
  method: 'eth_feeHistory',
  params: `["0x${FEE_HISTORY_BLOCKS.toString(16)}","latest",[50]]`,
}
const CHAIN_ID_CALL: RpcCall = { method: 'eth_chainId', params: '[]' }
/** The tip that the node suggests; some nodes do not offer the method. */
const TIP_CALL: RpcCall = { method: 'eth_maxPriorityFeePerGas', params: '[]', isOptional: true }
/** Places among the answers: of the tip, and of the first wallet's code. */
const TIP_PLACE = 2
const FIRST_CODE_PLACE = 3

interface State extends ScanReaderOptions {
  isChainIdKnown: boolean
  /** The wallets that the node has shown to take in one request. */
  maxWallets: number
}

/** Makes the reader of a URL. It checks the URL's chain id in its first request, and again after a failure. */
export function createScanReader(options: ScanReaderOptions): ReadChain {
  const state: State = { ...options, isChainIdKnown: false, maxWallets: Number.POSITIVE_INFINITY }
  return (asks, signal) => read(state, asks, signal)
}

async function read(state: State, asks: readonly Ask[], signal: AbortSignal): Promise<Reading> {
  if (asks.length > state.maxWallets) return readDivided(state, asks, signal)
  try {
    return await readTogether(state, asks, signal)
  } catch (error) {
    if (!(error instanceof RpcError)) throw error
    if (error.kind === 'TOO_LARGE' && asks.length > 1) return readDivided(state, asks, signal)
    state.isChainIdKnown = false
    throw error
  }
}

async function readTogether(state: State, asks: readonly Ask[], signal: AbortSignal): Promise<Reading> {
  const { chain, node, reads: usual } = state
  const reads = gatherReads(asks, usual)
  const calls = encodeCalls(chain, asks, reads)
  const checksChainId = !state.isChainIdKnown
  if (checksChainId) calls.push(CHAIN_ID_CALL)
  const results = await node.ask(calls, { maySplit: asks.length === 1, signal })
  if (checksChainId) checkChainId(chain, results.toSpliced(TIP_PLACE, 1))
  state.isChainIdKnown = true
  const answers = decodeAnswers(reads.list.length, resultOf(results[0], asks.length > 1))
  const answerTo = (read: ContractRead) => answers[reads.placeOf(read) ?? -1]
  const timestampSec = usual.timestampOf(answerTo)
  checkAge(state, timestampSec)
  const gasPrice = decodeGasPrice(resultOf(results[1]), resultIn(results[TIP_PLACE]))
  const states = asks.map(({ wallet }, i) => {
    const code = codeIn(results[i + FIRST_CODE_PLACE])
    if (code instanceof RpcError) return code
    return usual.stateOf({ wallet, timestampSec, ...gasPrice, walletIsContract: isContract(code), answerTo })
  })
  const [failure] = states.filter((each) => each instanceof RpcError)
  if (failure !== undefined && states.every((each) => each instanceof RpcError)) throw failure
  return { timestampSec, states }
}

/** Reads in two halves, each of which is divided further where it has to be. */
async function readDivided(state: State, asks: readonly Ask[], signal: AbortSignal): Promise<Reading> {
  const middle = Math.ceil(asks.length / 2)
  const halves = [asks.slice(0, middle), asks.slice(middle)]
  const settled = await Promise.allSettled(halves.map((half) => read(state, half, signal)))
  signal.throwIfAborted()
  const readings = settled.filter((each) => each.status === 'fulfilled').map(({ value }) => value)
  if (readings.length === 0) throw settled.find((each) => each.status === 'rejected')?.reason
  state.maxWallets = Math.min(state.maxWallets, middle)
  const states = settled.flatMap((each, i): Reading['states'] => {
    if (each.status === 'fulfilled') return each.value.states
    if (!(each.reason instanceof RpcError)) throw each.reason
    return (halves[i] ?? []).map(() => each.reason as RpcError)
  })
  return { timestampSec: Math.max(...readings.map((each) => each.timestampSec)), states }
}

function encodeCalls({ multicall }: ChainConfig, asks: readonly Ask[], reads: ReadSet): RpcCall[] {
  return [
    { method: 'eth_call', params: `[{"to":"${multicall}","data":"${encodeAggregate3(reads.list)}"},"latest"]` },
    FEE_HISTORY_CALL,
    TIP_CALL,
    ...asks.map(({ wallet }) => ({ method: 'eth_getCode', params: `["${wallet}","latest"]` })),
  ]
}

/** @throws RpcError BEHIND */
function checkAge({ clock, chain }: State, timestampSec: number): void {
  const ageSec = Math.floor(clock() / 1000) - timestampSec
  if (ageSec <= Math.max(STALE_HEAD_SECONDS, STALE_HEAD_BLOCKS * chain.blockTimeSeconds)) return
  throw new RpcError('BEHIND', `its newest block is ${ageSec} seconds old`)
}

/** @throws RpcError, TOO_LARGE where a smaller question might do */
function resultOf(answer: RpcAnswer | undefined, mayBeTooLarge = false): unknown {
  if (answer === undefined) throw new RpcError('INCONSISTENT', 'an answer is missing')
  if (answer.ok) return answer.result
  if (!mayBeTooLarge) throw answer.error
  throw new RpcError('TOO_LARGE', answer.error.detail, { cause: answer.error })
}

function codeIn(answer: RpcAnswer | undefined): string | RpcError {
  if (answer?.ok === false) return answer.error
  const code = answer?.result
  return typeof code === 'string' && code.startsWith('0x') ? code : new RpcError('INCONSISTENT', 'no code')
}

/** The code of an account that delegates to a contract begins so. @see https://eips.ethereum.org/EIPS/eip-7702 */
const DELEGATION = '0xef0100'

/** An account that delegates is a wallet all the same: it has a key, and pays for its transactions itself. */
function isContract(code: string): boolean {
  return code.length > 2 && !code.toLowerCase().startsWith(DELEGATION)
}

function gatherReads(asks: readonly Ask[], usual: UsualReads): ReadSet {
  const reads = createReadSet()
  usual.ofChain().forEach(reads.add)
  for (const { wallet, reads: further } of asks) {
    usual.ofWallet(wallet).forEach(reads.add)
    further.forEach(reads.add)
  }
  return reads
}

/** @throws RpcError */
function decodeAnswers(count: number, aggregate: unknown): readonly (string | undefined)[] {
  if (typeof aggregate !== 'string') throw new RpcError('INCONSISTENT', 'no data')
  if (aggregate === '0x')
    throw new RpcError('INCONSISTENT', 'there is no Multicall3 contract at the configured address')
  try {
    return decodeAggregate3(aggregate, count)
  } catch (cause) {
    if (!(cause instanceof RangeError)) throw cause
    throw new RpcError('INCONSISTENT', `the answer of Multicall3 is malformed: ${cause.message}`, { cause })
  }
}

/** @throws RpcError */
function checkChainId(chain: ChainConfig, answers: readonly RpcAnswer[]): void {
  const answer = answers.at(-1)
  // Where this call failed, the failure of another may say more.
  if (!answer?.ok) answers.forEach((each) => resultOf(each))
  const id = readQuantity(resultOf(answer))
  if (id === BigInt(chain.chainId)) return
  throw new RpcError('WRONG_CHAIN', `it says that its chain id is ${id ?? 'none'}, not ${chain.chainId}`)
}

/**
 * Decodes the price of gas. The tip is the larger of the median that was paid in blocks with transactions and the
 * node's suggestion: empty blocks report a tip of 0, and wallets send the tip that their node suggests.
 *
 * @param history - the answer to `eth_feeHistory(5, latest, [50])`; its last base fee is the next block's
 * @param suggested - the answer to `eth_maxPriorityFeePerGas`; undefined where the node gave none
 * @throws RpcError when it is no fee history
 */
export function decodeGasPrice(history: unknown, suggested?: unknown): Pick<ChainState, 'gasPrice' | 'maxFeePerGas'> {
  const { baseFeePerGas, reward, gasUsedRatio } = (history ?? {}) as Partial<Record<string, unknown>>
  const nextBaseFee = Array.isArray(baseFeePerGas) ? readQuantity(baseFeePerGas.at(-1)) : undefined
  if (nextBaseFee === undefined || !Array.isArray(reward)) throw new RpcError('INCONSISTENT', 'no fee history')
  const tips = reward.map((block: unknown) => (Array.isArray(block) ? readQuantity(block[0]) : undefined))
  const known = tips.filter((tip) => tip !== undefined)
  if (known.length < tips.length) throw new RpcError('INCONSISTENT', 'a fee history without tips')
  const ratios: readonly unknown[] = Array.isArray(gasUsedRatio) ? gasUsedRatio : []
  const paid = known.filter((_, i) => ratios[i] !== 0).toSorted((a, b) => (a < b ? -1 : a > b ? 1 : 0))
  const median = paid[paid.length >> 1] ?? 0n
  const suggestedTip = readQuantity(suggested) ?? 0n
  const tip = suggestedTip > median ? suggestedTip : median
  return { gasPrice: nextBaseFee + tip, maxFeePerGas: 2n * nextBaseFee + tip }
}
