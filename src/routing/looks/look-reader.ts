import type { ChainConfig } from '../../chains/chains-file.ts'
import {
  type ContractRead,
  createReadSet,
  decodeAggregate3,
  encodeAggregate3,
  type ReadSet,
} from '../../contracts/multicall.ts'
import type { Address } from '../../domain/address.ts'
import { type JsonRpc, type RpcAnswer, type RpcCall, RpcFailure } from '../../nodes/json-rpc.ts'
import type { ChainState, UsualReads } from './wallet-state.ts'

/** What is to be known for one wallet. */
export interface Ask {
  readonly wallet: Address
  /** Beside the balances and prices of all the chain's tokens. */
  readonly reads: readonly ContractRead[]
}

/** What a URL told to several asks. */
export interface Reading {
  /** The time of the block that everything is of. */
  readonly timestampSec: number
  /** In the order of the asks. */
  readonly states: readonly (ChainState | RpcFailure)[]
}

/** Looks at one chain through one URL. */
export interface ChainReader {
  /**
   * Reads everything for several wallets in one HTTP request; in more where the node finds that too much.
   *
   * @throws RpcFailure when no ask has its answer: the node is unreachable, on another chain, behind, or answers what cannot be right;
   *   the signal's reason when it fires
   */
  read(asks: readonly Ask[], signal: AbortSignal): Promise<Reading>
}

export interface ChainReaderOptions {
  readonly chain: ChainConfig
  /** The client of its URL. */
  readonly rpc: JsonRpc
  readonly reads: UsualReads
  /** Milliseconds since 1970. */
  readonly clock: () => number
}

/** Blocks whose tips are looked at. */
const FEE_HISTORY_BLOCKS = 5

/** A head is stale when it is older than this and than as many usual blocks: some chains make blocks only when there is work. */
const STALE_HEAD_SECONDS = 300
const STALE_HEAD_BLOCKS = 20

const FEE_HISTORY_CALL: RpcCall = {
  method: 'eth_feeHistory',
  params: `["0x${FEE_HISTORY_BLOCKS.toString(16)}","latest",[50]]`,
}
const CHAIN_ID_CALL: RpcCall = { method: 'eth_chainId', params: '[]' }
/** What the node would tip now; some do not know the method. */
const TIP_CALL: RpcCall = { method: 'eth_maxPriorityFeePerGas', params: '[]', isOptional: true }
/** Among the answers. */
const TIP_PLACE = 2
/** Where the wallets' code begins. */
const FIRST_CODE = 3

/** Makes the reader of a chain's URL. It checks the URL's chain id in its first request, and again after a failure. */
export function createChainReader({ chain, rpc, reads: usual, clock }: ChainReaderOptions): ChainReader {
  let isChainIdKnown = false
  /** What was found out that the node takes in one request. */
  let mostWallets = Number.POSITIVE_INFINITY

  function checkAge(timestampSec: number): void {
    const ageSec = Math.floor(clock() / 1000) - timestampSec
    if (ageSec <= Math.max(STALE_HEAD_SECONDS, STALE_HEAD_BLOCKS * chain.blockTimeSeconds)) return
    throw new RpcFailure('INCONSISTENT', `its newest block is ${ageSec} seconds old`, { isLie: true })
  }

  async function readAtOnce(asks: readonly Ask[], signal: AbortSignal): Promise<Reading> {
    const reads = gatherReads(asks, usual)
    const calls: RpcCall[] = [
      {
        method: 'eth_call',
        params: `[{"to":"${chain.multicall}","data":"${encodeAggregate3(reads.list)}"},"latest"]`,
      },
      FEE_HISTORY_CALL,
      TIP_CALL,
      ...asks.map(({ wallet }) => ({ method: 'eth_getCode', params: `["${wallet}","latest"]` })),
    ]
    const checksChainId = !isChainIdKnown
    if (checksChainId) calls.push(CHAIN_ID_CALL)
    const results = await rpc.callAll(calls, asks.length === 1, signal)
    if (checksChainId) checkChainId(chain, results.toSpliced(TIP_PLACE, 1))
    isChainIdKnown = true
    const answers = decodeAnswers(reads.list.length, resultOf(results[0], asks.length > 1))
    const answerTo = (read: ContractRead) => answers[reads.placeOf(read) ?? -1]
    const timestampSec = usual.timestampOf(answerTo)
    checkAge(timestampSec)
    const gasPrice = decodeGasPrice(resultOf(results[1]), resultIn(results[TIP_PLACE]))
    const states = asks.map(({ wallet }, i) => {
      const code = codeIn(results[i + FIRST_CODE])
      if (code instanceof RpcFailure) return code
      return usual.stateOf({ wallet, timestampSec, gasPrice, walletHasCode: code.length > 2, answerTo })
    })
    const [failure] = states.filter((state) => state instanceof RpcFailure)
    if (failure !== undefined && states.every((state) => state instanceof RpcFailure)) throw failure
    return { timestampSec, states }
  }

  /** In halves, each of which is divided further where it has to be. */
  async function readDivided(asks: readonly Ask[], signal: AbortSignal): Promise<Reading> {
    const middle = Math.ceil(asks.length / 2)
    const halves = [asks.slice(0, middle), asks.slice(middle)]
    const settled = await Promise.allSettled(halves.map((half) => read(half, signal)))
    signal.throwIfAborted()
    const readings = settled.filter((each) => each.status === 'fulfilled').map(({ value }) => value)
    if (readings.length === 0) throw settled.find((each) => each.status === 'rejected')?.reason
    mostWallets = Math.min(mostWallets, middle)
    const states = settled.flatMap((each, i): Reading['states'] => {
      if (each.status === 'fulfilled') return each.value.states
      if (!(each.reason instanceof RpcFailure)) throw each.reason
      return (halves[i] ?? []).map(() => each.reason as RpcFailure)
    })
    return { timestampSec: Math.max(...readings.map((each) => each.timestampSec)), states }
  }

  async function read(asks: readonly Ask[], signal: AbortSignal): Promise<Reading> {
    if (asks.length > mostWallets) return readDivided(asks, signal)
    try {
      return await readAtOnce(asks, signal)
    } catch (error) {
      if (!(error instanceof RpcFailure)) throw error
      if (error.maybeTooLarge && asks.length > 1) return readDivided(asks, signal)
      isChainIdKnown = false
      throw error
    }
  }

  return { read }
}

/** @throws RpcFailure */
function resultOf(answer: RpcAnswer | undefined, maybeTooLarge = false): unknown {
  if (answer === undefined) throw new RpcFailure('INCONSISTENT', 'an answer is missing')
  if ('result' in answer) return answer.result
  if (!maybeTooLarge) throw answer.failure
  throw new RpcFailure(answer.failure.kind, answer.failure.message, { cause: answer.failure, maybeTooLarge })
}

function resultIn(answer: RpcAnswer | undefined): unknown {
  return answer !== undefined && 'result' in answer ? answer.result : undefined
}

function codeIn(answer: RpcAnswer | undefined): string | RpcFailure {
  if (answer !== undefined && 'failure' in answer) return answer.failure
  const code = answer?.result
  return typeof code === 'string' && code.startsWith('0x') ? code : new RpcFailure('INCONSISTENT', 'no code')
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

/** @throws RpcFailure */
function decodeAnswers(count: number, aggregate: unknown): readonly (string | undefined)[] {
  if (typeof aggregate !== 'string') throw new RpcFailure('INCONSISTENT', 'no data')
  if (aggregate === '0x')
    throw new RpcFailure('INCONSISTENT', 'there is no Multicall3 contract at the configured address')
  try {
    return decodeAggregate3(aggregate, count)
  } catch (cause) {
    if (!(cause instanceof RangeError)) throw cause
    throw new RpcFailure('INCONSISTENT', `what Multicall3 returned is broken: ${cause.message}`, { cause })
  }
}

/** @throws RpcFailure */
function checkChainId(chain: ChainConfig, answers: readonly RpcAnswer[]): void {
  const answer = answers.at(-1)
  // Where this one failed, something else may have before it.
  if (answer === undefined || 'failure' in answer) answers.forEach((each) => resultOf(each))
  const id = quantity(resultOf(answer))
  if (id === BigInt(chain.chainId)) return
  const detail = `it says that its chain id is ${id ?? 'none'}, not ${chain.chainId}`
  throw new RpcFailure('INCONSISTENT', detail, { isLie: true })
}

function quantity(answer: unknown): bigint | undefined {
  return typeof answer === 'string' && /^0x[0-9a-f]{1,64}$/i.test(answer) ? BigInt(answer) : undefined
}

/**
 * The price of gas: the next block's base fee and a tip. The tip is the larger of the median that blocks with transactions paid and what the
 * node would tip now: blocks without transactions tell a tip of 0, and wallets send what their node tells them.
 *
 * @param history - the answer to `eth_feeHistory(5, latest, [50])`; the next base fee stands behind those of the blocks themselves
 * @param suggested - the answer to `eth_maxPriorityFeePerGas`; undefined where the node gave none
 * @throws RpcFailure when it is no fee history
 */
export function decodeGasPrice(history: unknown, suggested?: unknown): bigint {
  const { baseFeePerGas, reward, gasUsedRatio } = (history ?? {}) as Partial<Record<string, unknown>>
  const nextBaseFee = Array.isArray(baseFeePerGas) ? quantity(baseFeePerGas.at(-1)) : undefined
  if (nextBaseFee === undefined || !Array.isArray(reward)) throw new RpcFailure('INCONSISTENT', 'no fee history')
  const tips = reward.map((block: unknown) => (Array.isArray(block) ? quantity(block[0]) : undefined))
  const known = tips.filter((tip) => tip !== undefined)
  if (known.length < tips.length) throw new RpcFailure('INCONSISTENT', 'a fee history without tips')
  const ratios: readonly unknown[] = Array.isArray(gasUsedRatio) ? gasUsedRatio : []
  const paid = known.filter((_, i) => ratios[i] !== 0).toSorted((a, b) => (a < b ? -1 : a > b ? 1 : 0))
  const median = paid[paid.length >> 1] ?? 0n
  const tip = quantity(suggested) ?? 0n
  return nextBaseFee + (tip > median ? tip : median)
}
