import type { ChainDirectory } from '../../../chains/chain-directory.ts'
import type { ChainConfig, SwapV2Config } from '../../../chains/chains-file.ts'
import type { TokenDirectory } from '../../../chains/token-directory.ts'
import { readAllowance, readReserves, readSwapFee, readSwapRouter } from '../../../contracts/contract-reads.ts'
import type { ContractRead } from '../../../contracts/multicall.ts'
import { encodeSwappedPayment } from '../../../contracts/payment-calls.ts'
import { addressAt, uintAt } from '../../../contracts/words.ts'
import type { Address } from '../../../domain/address.ts'
import { type Explanation, explain } from '../../../errors/waybill-error.ts'
import { maxToSpend, type Payment, platformFeeOf } from '../../due-payment.ts'
import type { ChainState } from '../../looks/wallet-state.ts'
import { type SwapGasFacts, swapToPayGas } from '../../quotes/gas.ts'
import type { Step } from '../../quotes/steps.ts'
import { approvalSteps } from '../approval.ts'
import { explainUnreadable, newestContract, secondsOfBlocks, usedOn } from '../configured-contract.ts'
import { directTerms, platformCosts, proxyPayment, REQUEST_NETWORK } from '../fee-proxy.ts'
import type { Plan, Provider, Quote } from '../provider.ts'
import { receiverReads } from '../receivers.ts'
import { type Erc20, erc20Pair } from './erc20-pair.ts'
import { isFirst } from './pool-address.ts'
import { amountsFor, pairAddress, type Reserves } from './pool-v2.ts'
import { cheapestSwap, priceSwap, type SwapAmounts } from './swap-price.ts'

const NAME = 'uniswap-v2'

/** The exchange refuses the swap when it is mined later than this. */
const DEADLINE_SECONDS = 20 * 60

/**
 * Pays with another token of the chain in one transaction, through Request's ERC20SwapToPay (0.4.0 and later): it pulls the most that may be
 * spent, swaps what is needed on a Uniswap-v2-shaped exchange, pays through the fee proxy and returns the rest.
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
      const pair = erc20Pair(NAME, candidate, payment)
      if ('reason' in pair) return pair
      const { source, destination } = pair
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

/** What the swap buys, base units of the payment currency. */
interface Bought {
  readonly amount: bigint
  readonly platformFee: bigint
  /** The fee of ERC20SwapToPay. */
  readonly protocolFee: bigint
  readonly total: bigint
}

interface BestSwap extends SwapAmounts {
  readonly path: readonly Address[]
}

function planSwap(swap: Swap): Plan {
  const { chain, exchange, swapToPay, proxy, source, destination, paths, payment } = swap
  const hops = paths.map((path) => path.slice(1).map((to, i) => hopOf(exchange, path[i] as Address, to)))
  const reads = {
    allowance: readAllowance(source.address, payment.wallet, swapToPay),
    toRouter: readAllowance(source.address, swapToPay, exchange.router),
    toProxy: readAllowance(destination.address, swapToPay, proxy),
    router: readSwapRouter(swapToPay),
    fee: readSwapFee(swapToPay),
  }
  const receivers = receiverReads(chain, destination, payment)
  const pools = hops.flat().map(({ read }) => read)
  return {
    contracts: usedOn(chain.name, source.address, destination.address, swapToPay, proxy, exchange.router),
    reads: [...Object.values(reads), ...pools, ...receivers.reads],
    quote(state, { priceOf }) {
      const uintFrom = (read: ContractRead) => uintAt(state.answerTo(read), 0)
      const [allowance, feePerMille] = [uintFrom(reads.allowance), uintFrom(reads.fee)]
      if (allowance === undefined) return explainUnreadable(source, 'its allowance')
      if (feePerMille === undefined) return explain('NO_SWAP_CONTRACT', { exchange: NAME, chain: chain.name })
      const bought = boughtFor(payment, feePerMille)
      const best = findBest(swap, hops, bought.total, state)
      if ('reason' in best) return best
      if (bought.protocolFee > 0n && payment.platformFee === undefined) {
        return explain('NO_FEE_RECEIVER', { exchange: NAME, chain: chain.name })
      }
      const limit = maxToSpend(best.amountIn, payment.limit)
      const faults = setUpFaults(swap, {
        router: addressAt(state.answerTo(reads.router), 0),
        toRouter: uintFrom(reads.toRouter) ?? 0n,
        toProxy: uintFrom(reads.toProxy) ?? 0n,
        limit,
        total: bought.total,
      })
      if (faults.length > 0) return explainNotSetUp(chain.name, faults)
      const fees = bought.platformFee + bought.protocolFee
      const facts: SwapGasFacts = {
        ...receivers.gasFacts(state, payment.platformFee === undefined ? undefined : fees),
        hops: best.path.length - 1,
      }
      return quoteOf(swap, {
        bought,
        best,
        limit,
        allowance,
        facts,
        deadlineSec: state.timestampSec + DEADLINE_SECONDS,
        costs: priceSwap(best, { exchange: NAME, source, destination, priceOf, received: bought.amount }),
      })
    },
  }
}

interface Hop {
  readonly read: ContractRead
  /** Whether the token that goes in is the pair's first. */
  readonly isForward: boolean
}

function hopOf(exchange: SwapV2Config, from: Address, to: Address): Hop {
  return { read: readReserves(pairAddress(exchange, from, to)), isForward: isFirst(from, to) }
}

function reservesOf({ read, isForward }: Hop, state: ChainState): Reserves | undefined {
  const answer = state.answerTo(read) ?? ''
  const [first, second] = [uintAt(answer, 0), uintAt(answer, 1)]
  if (first === undefined || second === undefined) return undefined
  return isForward ? { ofIn: first, ofOut: second } : { ofIn: second, ofOut: first }
}

function boughtFor({ amount, platformFee }: Payment, feePerMille: bigint): Bought {
  const platform = platformFee === undefined ? 0n : platformFeeOf(amount, platformFee.percentage)
  const protocolFee = ((amount + platform) * feePerMille) / 1_000n
  return { amount, platformFee: platform, protocolFee, total: amount + platform + protocolFee }
}

/** The path that takes the least in; of equal ones the shortest. */
function findBest(
  { exchange, paths, source, chain, payment }: Swap,
  hops: readonly (readonly Hop[])[],
  total: bigint,
  state: ChainState,
): BestSwap | Explanation {
  const pair = { exchange: NAME, token: source.symbol, chain: chain.name, ...directTerms(payment) }
  const pools = hops.map((ofPath) => ofPath.map((hop) => reservesOf(hop, state)))
  const whole = pools.map((ofPath) => ofPath.filter((reserves) => reserves !== undefined))
  const existing = paths.flatMap((path, i) => {
    const reserves = whole[i] ?? []
    return reserves.length === path.length - 1 ? [{ path, reserves }] : []
  })
  if (existing.length === 0) return explain('NO_POOL', pair)
  const possible = existing.flatMap(({ path, reserves }) => {
    const amounts = amountsFor(total, reserves, exchange.feeBps)
    return amounts === undefined ? [] : [{ ...amounts, path }]
  })
  return cheapestSwap(possible) ?? explain('INSUFFICIENT_LIQUIDITY', pair)
}

interface SetUp {
  readonly router: Address | undefined
  readonly toRouter: bigint
  readonly toProxy: bigint
  readonly limit: bigint
  readonly total: bigint
}

interface SetUpFault {
  readonly detail: string
  /** The call that mends it. */
  readonly call: string
}

/** Why the contract would revert the swap as it is set up, in the order in which to mend it. */
function setUpFaults({ exchange, proxy, source, destination }: Swap, setUp: SetUp): SetUpFault[] {
  const router = {
    detail: 'it swaps on another router than the configured one',
    call: `setRouter(${exchange.router})`,
  }
  const toRouter = {
    detail: `its router may not spend its ${source.symbol}`,
    call: `approveRouterToSpend(${source.address})`,
  }
  const toProxy = {
    detail: `the fee proxy may not spend its ${destination.symbol}`,
    call: `approvePaymentProxyToSpend(${destination.address}, ${proxy})`,
  }
  return [
    ...(setUp.router === exchange.router ? [] : [router]),
    ...(setUp.toRouter >= setUp.limit ? [] : [toRouter]),
    ...(setUp.toProxy >= setUp.total ? [] : [toProxy]),
  ]
}

function explainNotSetUp(chain: string, faults: readonly SetUpFault[]): Explanation {
  const calls = faults.map(({ call }) => call).join(', then ')
  return explain('SWAP_NOT_SET_UP', { chain, detail: faults[0]?.detail ?? '', calls })
}

interface Quoting {
  readonly bought: Bought
  readonly best: BestSwap
  readonly limit: bigint
  readonly allowance: bigint
  readonly facts: SwapGasFacts
  readonly deadlineSec: number
  readonly costs: ReturnType<typeof priceSwap>
}

function quoteOf(swap: Swap, { bought, best, limit, allowance, facts, deadlineSec, costs }: Quoting): Quote {
  const { chain, swapToPay, proxy, source, destination, payment } = swap
  const approvals = approvalSteps({ token: source, spender: swapToPay, allowance, need: limit })
  const call = () => ({
    ...proxyPayment(payment, { amount: bought.amount, fee: bought.platformFee }),
    proxy,
    path: best.path,
    maxAmountIn: limit,
    deadlineSec,
  })
  const pay: Step = {
    kind: 'PAY',
    gasLimit: swapToPayGas(facts),
    transaction: () => ({ to: swapToPay, data: encodeSwappedPayment(call()), value: 0n }),
  }
  const steps = [...approvals, pay]
  const { lpFee, priceImpact, warnings } = costs
  const line = { stage: 'SENDING', token: destination } as const
  return {
    sourceAmount: best.amountIn,
    maxPulled: limit,
    received: bought.amount,
    costs: [
      ...platformCosts(payment.platformFee && bought.platformFee, destination),
      ...(bought.protocolFee === 0n
        ? []
        : [{ ...line, type: 'PROTOCOL', provider: REQUEST_NETWORK, amount: bought.protocolFee } as const]),
      { ...line, type: 'SWAP', provider: NAME, amount: lpFee },
    ],
    priceImpact,
    steps,
    durationSeconds: secondsOfBlocks(chain, steps.length),
    atomic: true,
    warnings,
    expiresAtMs: deadlineSec * 1_000,
  }
}
