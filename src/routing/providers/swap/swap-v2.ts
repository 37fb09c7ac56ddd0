import type { ChainDirectory } from '../../../chains/chain-directory.ts'
import type { ChainConfig, SwapV2Config } from '../../../chains/chains-file.ts'
import type { TokenDirectory } from '../../../chains/token-directory.ts'
import { readAllowance, readReserves, readSwapFee, readSwapRouter } from '../../../contracts/contract-reads.ts'
import type { ContractRead } from '../../../contracts/multicall.ts'
import { encodeSwappedPayment } from '../../../contracts/payment-calls.ts'
import { addressAt, uintAt } from '../../../contracts/words.ts'
import type { Address } from '../../../domain/address.ts'
import { type Erc20, isErc20 } from '../../../domain/currency.ts'
import type { Hex } from '../../../domain/hex.ts'
import { type Explanation, explain } from '../../../errors/waybill-error.ts'
import { type PaymentGasFacts, receiverGas, withMarginForPools } from '../../gas/gas.ts'
import type { Step } from '../../gas/steps.ts'
import { readApproval } from '../../plans/approval.ts'
import { newestContract, usedOn } from '../../plans/configured-contract.ts'
import type { CostLine } from '../../plans/costs.ts'
import {
  chargedFor,
  directTerms,
  platformCosts,
  proxyPayment,
  REQUEST_NETWORK,
  receiverReads,
} from '../../plans/fee-proxy.ts'
import type { Plan, Provider } from '../../plans/provider.ts'
import { maxToSpend, type Payment } from '../../question/parse-question.ts'
import type { ChainState } from '../../scan/wallet-state.ts'
import { cheapestSwap, create2Address, explainCoin, isFirst, priceSwap, type SwapAmounts } from './swap-price.ts'

const NAME = 'uniswap-v2'

/** The exchange refuses the swap when it is mined later than this. */
const DEADLINE_SECONDS = 20 * 60

const SWAP_TO_PAY = 167_000n
const FURTHER_HOP = 46_400n

/**
 * Such a payment clears so much storage that it gets the largest refund, a fifth of its gas. So whatever is added counts four fifths.
 */
const NEW_RECEIVER = 13_700n
const FEE = 6_800n

/**
 * The gas of `swapTransferWithReference` of ERC20SwapToPay, once its router and the proxy may spend its tokens. The first swap of a pool takes
 * 40,000 more.
 *
 * @param hops - pools on its path
 */
function swapToPayGas(facts: PaymentGasFacts, hops: number): bigint {
  return withMarginForPools(SWAP_TO_PAY + FURTHER_HOP * BigInt(hops - 1) + receiverGas(facts, NEW_RECEIVER, FEE))
}

/**
 * Pays with another token of the chain in one transaction, through Request's ERC20SwapToPay (0.4.0 and later): it pulls the most that may be
 * spent, swaps what is needed on a Uniswap-v2-compatible exchange, pays through the fee proxy and returns the rest.
 *
 * @see https://github.com/RequestNetwork/requestNetwork, ERC20SwapToPay
 */
export function createSwapV2Provider(chains: ChainDirectory, tokens: TokenDirectory): Provider {
  return {
    name: NAME,
    kind: 'SWAP',
    plan(candidate, payment) {
      const chain = chains.config(candidate.source.chain)
      if (chain?.swapV2 === undefined) return undefined
      const swapToPay = newestContract(chain, 'ERC20_SWAP_TO_PAY')
      const proxy = newestContract(chain, 'ERC20_FEE_PROXY')
      if (swapToPay === undefined || proxy === undefined) {
        return explain('NO_SWAP_CONTRACT', { exchange: NAME, chain: candidate.source.chain })
      }
      const { source, destination } = candidate
      if (!isErc20(source) || !isErc20(destination)) return explainCoin(NAME, candidate, payment)
      const paths = pathsOf(chain.swapV2, source, destination, tokens)
      return planSwap({ chain, exchange: chain.swapV2, swapToPay, proxy, source, destination, paths, payment })
    },
  }
}

/** The direct pair first, then paths through one token. */
function pathsOf(exchange: SwapV2Config, source: Erc20, destination: Erc20, tokens: TokenDirectory): Address[][] {
  const between = exchange.through.flatMap((symbol) => tokens.onChain(source.chain, symbol)?.address ?? [])
  const others = between.filter((address) => address !== source.address && address !== destination.address)
  return [[], ...others.map((address) => [address])].map((via) => [source.address, ...via, destination.address])
}

interface Swap {
  readonly chain: ChainConfig
  readonly exchange: SwapV2Config
  readonly swapToPay: Address
  /** The fee proxy. */
  readonly proxy: Address
  readonly source: Erc20
  readonly destination: Erc20
  readonly paths: readonly (readonly Address[])[]
  readonly payment: Payment
}

function planSwap(swap: Swap): Plan {
  const { chain, exchange, swapToPay, proxy, source, destination, paths, payment } = swap
  const ways = paths.map((path) => {
    return { path, hops: path.slice(1).map((to, i) => hopOf(exchange, path[i] as Address, to)) }
  })
  const setUpReads = {
    toRouter: readAllowance(source.address, swapToPay, exchange.router),
    toProxy: readAllowance(destination.address, swapToPay, proxy),
    router: readSwapRouter(swapToPay),
  }
  const feeRead = readSwapFee(swapToPay)
  const approvals = readApproval(source, payment.wallet, swapToPay)
  const receivers = receiverReads(chain, destination, payment)
  const pools = ways.flatMap(({ hops }) => hops.map(({ read }) => read))
  const { amount, fee, total: charged } = chargedFor(payment)
  return {
    contracts: usedOn(chain.name, source.address, destination.address, swapToPay, proxy, exchange.router),
    reads: [...approvals.reads, ...Object.values(setUpReads), feeRead, ...pools, ...receivers.reads],
    quote(state, { priceOf }) {
      const approval = approvals.decode(state)
      if ('reason' in approval) return approval
      const feePerMille = uintAt(state.answerTo(feeRead), 0)
      if (feePerMille === undefined) return explain('NO_SWAP_CONTRACT', { exchange: NAME, chain: chain.name })
      // The fee of ERC20SwapToPay.
      const protocolFee = (charged * feePerMille) / 1_000n
      const total = charged + protocolFee
      const best = findBest(swap, ways, total, state)
      if ('reason' in best) return best
      if (protocolFee > 0n && fee === undefined) return explain('NO_FEE_RECEIVER', { chain: chain.name })
      const limit = maxToSpend(best.amountIn, payment.limit)
      const notSetUp = explainNotSetUp(swap, state, setUpReads, { limit, total })
      if (notSetUp !== undefined) return notSetUp

      const deadlineSec = state.timestampSec + DEADLINE_SECONDS
      const call = () => ({
        ...proxyPayment(payment, { amount, fee }),
        proxy,
        path: best.path,
        maxAmountIn: limit,
        deadlineSec,
      })
      const gasFacts = receivers.gasFacts(state, fee === undefined ? undefined : fee + protocolFee)
      const pay: Step = {
        kind: 'PAY',
        gasLimit: swapToPayGas(gasFacts, best.path.length - 1),
        transaction: () => ({ to: swapToPay, data: encodeSwappedPayment(call()), value: 0n }),
      }
      const steps = [...approval.upTo(limit).steps, pay]
      const { cost, ...price } = priceSwap(best, { exchange: NAME, source, destination, priceOf, received: amount })
      const protocol: CostLine = { ...cost, type: 'PROTOCOL', provider: REQUEST_NETWORK, amount: protocolFee }
      return {
        sourceAmount: best.amountIn,
        maxPulled: limit,
        received: amount,
        costs: [...platformCosts(fee, destination), ...(protocolFee === 0n ? [] : [protocol]), cost],
        steps,
        atomic: true,
        ...price,
        expiresAtMs: deadlineSec * 1_000,
      }
    },
  }
}

interface Hop {
  readonly read: ContractRead
  /** Whether the token that goes in is the pair's first. */
  readonly isForward: boolean
}

/** A path of tokens, and the pools on it. */
interface Way {
  readonly path: readonly Address[]
  readonly hops: readonly Hop[]
}

function hopOf(exchange: SwapV2Config, from: Address, to: Address): Hop {
  return { read: readReserves(pairAddress(exchange, from, to)), isForward: isFirst(from, to) }
}

function reservesOf({ read, isForward }: Hop, state: ChainState): Reserves | undefined {
  const answer = state.answerTo(read)
  const [first, second] = [uintAt(answer, 0), uintAt(answer, 1)]
  if (first === undefined || second === undefined) return undefined
  return isForward ? { ofIn: first, ofOut: second } : { ofIn: second, ofOut: first }
}

/** The path that takes the least in; of equal ones the shortest. */
function findBest(
  { exchange, source, chain, payment }: Swap,
  ways: readonly Way[],
  total: bigint,
  state: ChainState,
): (SwapAmounts & Pick<Way, 'path'>) | Explanation {
  const pair = { exchange: NAME, token: source.symbol, chain: chain.name, ...directTerms(payment) }
  const existing = ways.flatMap(({ path, hops }) => {
    const pools = hops.map((hop) => reservesOf(hop, state))
    return pools.every((pool) => pool !== undefined) ? [{ path, pools }] : []
  })
  if (existing.length === 0) return explain('NO_POOL', pair)
  const possible = existing.flatMap(({ path, pools }) => {
    const amounts = amountsFor(total, pools, exchange.feeBps)
    return amounts === undefined ? [] : [{ ...amounts, path }]
  })
  return cheapestSwap(possible) ?? explain('INSUFFICIENT_LIQUIDITY', pair)
}

/** Why the contract would revert the swap as it is set up, and the calls that mend it in their order; undefined where it would not. */
function explainNotSetUp(
  { chain, exchange, proxy, source, destination }: Swap,
  state: ChainState,
  reads: Readonly<Record<'router' | 'toRouter' | 'toProxy', ContractRead>>,
  { limit, total }: { readonly limit: bigint; readonly total: bigint },
): Explanation | undefined {
  const allowed = (read: ContractRead) => uintAt(state.answerTo(read), 0) ?? 0n
  const [first, ...more] = [
    {
      isFault: addressAt(state.answerTo(reads.router), 0) !== exchange.router,
      detail: 'it swaps on another router than the configured one',
      call: `setRouter(${exchange.router})`,
    },
    {
      isFault: allowed(reads.toRouter) < limit,
      detail: `its router may not spend its ${source.symbol}`,
      call: `approveRouterToSpend(${source.address})`,
    },
    {
      isFault: allowed(reads.toProxy) < total,
      detail: `the fee proxy may not spend its ${destination.symbol}`,
      call: `approvePaymentProxyToSpend(${destination.address}, ${proxy})`,
    },
  ].filter(({ isFault }) => isFault)
  if (first === undefined) return undefined
  const calls = [first, ...more].map(({ call }) => call).join(', then ')
  return explain('SWAP_NOT_SET_UP', { chain: chain.name, detail: first.detail, calls })
}

/** A pool's reserves of the token that goes in and of the token that comes out. */
export interface Reserves {
  readonly ofIn: bigint
  readonly ofOut: bigint
}

/** The address of the pair of two tokens, whether or not it has been created. */
function pairAddress({ factory, pairCodeHash }: SwapV2Config, a: Address, b: Address): Address {
  const [first, second] = isFirst(a, b) ? [a, b] : [b, a]
  return create2Address(factory, pairCodeHash, `${first as Hex}${second.slice(2)}`)
}

const BPS = 10_000n

/**
 * The input for which `amountOut` comes out at the end of a path of pools: exactly what the router takes.
 *
 * @param pools - in the order of the swap
 * @returns undefined when the reserves of a pool are too small
 * @see https://github.com/Uniswap/v2-periphery, UniswapV2Library.getAmountsIn
 */
export function amountsFor(amountOut: bigint, pools: readonly Reserves[], feeBps: number): SwapAmounts | undefined {
  const passedOn = BPS - BigInt(feeBps)
  let amountIn = amountOut
  /** From the current pool to the end of the path. */
  let midPrice = { numerator: 1n, denominator: 1n }
  let kept = 0n
  for (const { ofIn, ofOut } of pools.toReversed()) {
    if (ofIn === 0n || amountIn >= ofOut) return undefined
    amountIn = (ofIn * amountIn * BPS) / ((ofOut - amountIn) * passedOn) + 1n
    midPrice = { numerator: midPrice.numerator * ofOut, denominator: midPrice.denominator * ofIn }
    // In units of 1/denominator of the mid price, like what the later pools keep.
    kept = kept * ofIn + amountIn * BigInt(feeBps) * midPrice.numerator
  }
  return { amountIn, amountOut, midPrice, kept: { numerator: kept, denominator: midPrice.denominator * BPS } }
}
