import type { ChainDirectory } from '../../../chains/chain-directory.ts'
import type { ChainConfig, SwapV3Config } from '../../../chains/chains-file.ts'
import { readAllowance, readExactOutput, readSlot0 } from '../../../contracts/contract-reads.ts'
import type { ContractRead } from '../../../contracts/multicall.ts'
import { type ExactOutputSwap, encodeExactOutputSwap } from '../../../contracts/payment-calls.ts'
import { encodeAddress, encodeUint, uintAt } from '../../../contracts/words.ts'
import type { Address } from '../../../domain/address.ts'
import { type Explanation, explain } from '../../../errors/waybill-error.ts'
import { maxToSpend, type Payment } from '../../due-payment.ts'
import type { ChainState } from '../../looks/wallet-state.ts'
import { erc20PaymentGas, swapV3Gas } from '../../quotes/gas.ts'
import type { Step, Transaction } from '../../quotes/steps.ts'
import { approvalSteps } from '../approval.ts'
import {
  explainNoContract,
  explainUnreadable,
  newestContract,
  secondsOfBlocks,
  usedOn,
} from '../configured-contract.ts'
import { type Charged, chargedFor, directTerms, erc20Payment, platformCosts } from '../fee-proxy.ts'
import type { Plan, Provider, Quote } from '../provider.ts'
import { receiverReads } from '../receivers.ts'
import { type Erc20, erc20Pair } from './erc20-pair.ts'
import { create2Address, isFirst } from './pool-address.ts'
import { cheapestSwap, priceSwap, type SwapAmounts } from './swap-price.ts'

const NAME = 'uniswap-v3'

/** The exchange refuses the swap when it is mined later than this. */
const DEADLINE_SECONDS = 20 * 60

/**
 * Swaps another token of the chain on a Uniswap-v3-shaped exchange into the payer's own wallet, and then pays. No contract does both in one
 * transaction. Between the two the wallet holds the payment currency, so the direct route can finish the payment.
 */
export function createSwapV3Provider(chains: ChainDirectory): Provider {
  return {
    name: NAME,
    kind: 'SWAP',
    plan(candidate, payment) {
      const chain = chains.config(candidate.source.chain)
      if (chain?.swapV3 === undefined) return undefined
      const pair = erc20Pair(NAME, candidate, payment)
      if ('reason' in pair) return pair
      const proxy = newestContract(chain, 'ERC20_FEE_PROXY')
      if (proxy === undefined) return explainNoContract(pair.destination, 'ERC20_FEE_PROXY')
      return planSwap({ chain, exchange: chain.swapV3, proxy, ...pair, payment })
    },
  }
}

interface Swap {
  readonly chain: ChainConfig
  readonly exchange: SwapV3Config
  /** The fee proxy. */
  readonly proxy: Address
  readonly source: Erc20
  readonly destination: Erc20
  readonly payment: Payment
}

/** The pool of one fee tier, and its reads. */
interface Tier {
  /** Millionths. */
  readonly fee: number
  readonly price: ContractRead
  readonly amount: ContractRead
}

interface BestSwap extends SwapAmounts {
  readonly fee: number
  /** The pool's gas by QuoterV2. */
  readonly poolGas: bigint
}

function planSwap(swap: Swap): Plan {
  const { chain, exchange, proxy, source, destination, payment } = swap
  const charged = chargedFor(payment)
  const tiers = exchange.fees.map((fee) => tierOf(swap, fee, charged.total))
  const toRouter = readAllowance(source.address, payment.wallet, exchange.router)
  const toProxy = readAllowance(destination.address, payment.wallet, proxy)
  const receivers = receiverReads(chain, destination, payment)
  return {
    contracts: usedOn(chain.name, source.address, destination.address, proxy, exchange.router),
    reads: [toRouter, toProxy, ...tiers.flatMap(({ price, amount }) => [price, amount]), ...receivers.reads],
    quote(state, { priceOf }) {
      const uintFrom = (read: ContractRead) => uintAt(state.answerTo(read), 0)
      const [allowance, proxyAllowance] = [uintFrom(toRouter), uintFrom(toProxy)]
      if (allowance === undefined) return explainUnreadable(source, 'its allowance')
      if (proxyAllowance === undefined) return explainUnreadable(destination, 'its allowance')
      const best = findBest(swap, tiers, charged.total, state)
      if ('reason' in best) return best
      const limit = maxToSpend(best.amountIn, payment.limit)
      const deadlineSec = state.timestampSec + DEADLINE_SECONDS
      const held = state.balanceOf(destination) ?? 0n
      const approvals = approvalSteps({
        token: destination,
        spender: proxy,
        allowance: proxyAllowance,
        need: charged.total,
      })
      const pay: Step = {
        kind: 'PAY',
        gasLimit: erc20PaymentGas({
          ...receivers.gasFacts(state, charged.fee),
          clearsAllowance: approvals.length > 0 || proxyAllowance === charged.total,
          clearsBalance: held === 0n,
        }),
        transaction: () => erc20Payment(proxy, destination.address, payment, charged),
      }
      const steps = [
        ...approvalSteps({ token: source, spender: exchange.router, allowance, need: limit }),
        {
          kind: 'SWAP',
          gasLimit: swapV3Gas({ poolGas: best.poolGas, receiverIsNew: held === 0n }),
          effect: { kind: 'BALANCE', token: destination.address, amount: held + charged.total },
          transaction: () => swapTransaction(swap, best, { amountOut: charged.total, maxAmountIn: limit, deadlineSec }),
        } as const,
        ...approvals,
        pay,
      ]
      const costs = priceSwap(best, { exchange: NAME, source, destination, priceOf, received: charged.amount })
      return quoteOf(swap, { charged, best, limit, steps, deadlineSec, costs })
    },
  }
}

function tierOf({ exchange, source, destination }: Swap, fee: number, amountOut: bigint): Tier {
  const [first, second] = isFirst(source.address, destination.address)
    ? [source.address, destination.address]
    : [destination.address, source.address]
  const terms = encodeAddress(first) + encodeAddress(second) + encodeUint(fee)
  const pool = create2Address(exchange.factory, exchange.poolCodeHash, `0x${terms}`)
  const [tokenIn, tokenOut] = [source.address, destination.address]
  return {
    fee,
    price: readSlot0(pool),
    amount: readExactOutput(exchange.quoter, { tokenIn, tokenOut, amountOut, fee }),
  }
}

/** The tier that takes the least in. */
function findBest(
  { source, destination, chain, payment }: Swap,
  tiers: readonly Tier[],
  amountOut: bigint,
  state: ChainState,
): BestSwap | Explanation {
  const pair = { exchange: NAME, token: source.symbol, chain: chain.name, ...directTerms(payment) }
  const existing = tiers.filter(({ price }) => (uintAt(state.answerTo(price), 0) ?? 0n) > 0n)
  if (existing.length === 0) return explain('NO_POOL', pair)
  const possible = existing.flatMap(({ fee, price, amount }) => {
    const answer = state.answerTo(amount) ?? ''
    const [amountIn, poolGas] = [uintAt(answer, 0), uintAt(answer, 3)]
    const root = uintAt(state.answerTo(price), 0)
    if (amountIn === undefined || amountIn === 0n || poolGas === undefined || root === undefined) return []
    const amounts = amountsOf(amountIn, amountOut, fee, root, isFirst(source.address, destination.address))
    return [{ ...amounts, fee, poolGas }]
  })
  return cheapestSwap(possible) ?? explain('INSUFFICIENT_LIQUIDITY', pair)
}

const MILLION = 1_000_000n
const Q192 = 2n ** 192n

/** @param root - the square root of the price of the pool's first token in its second, in 2^-96 */
function amountsOf(amountIn: bigint, amountOut: bigint, fee: number, root: bigint, isForward: boolean): SwapAmounts {
  const price = root * root
  const midPrice = isForward ? { numerator: price, denominator: Q192 } : { numerator: Q192, denominator: price }
  const kept = {
    numerator: amountIn * BigInt(fee) * midPrice.numerator,
    denominator: MILLION * midPrice.denominator,
  }
  return { amountIn, amountOut, midPrice, kept }
}

/** Swaps into the payer's own wallet. */
function swapTransaction(
  { exchange, source, destination, payment }: Swap,
  { fee }: BestSwap,
  terms: Pick<ExactOutputSwap, 'amountOut' | 'maxAmountIn' | 'deadlineSec'>,
): Transaction {
  const pair = { tokenIn: source.address, tokenOut: destination.address, fee }
  const data = encodeExactOutputSwap({ ...pair, ...terms, recipient: payment.wallet })
  return { to: exchange.router, data, value: 0n }
}

interface Quoting {
  readonly charged: Charged
  readonly best: BestSwap
  readonly limit: bigint
  readonly steps: readonly Step[]
  readonly deadlineSec: number
  readonly costs: ReturnType<typeof priceSwap>
}

function quoteOf({ chain, destination }: Swap, quoting: Quoting): Quote {
  const { charged, best, limit, steps, deadlineSec } = quoting
  const { lpFee, priceImpact, warnings } = quoting.costs
  return {
    sourceAmount: best.amountIn,
    maxPulled: limit,
    received: charged.amount,
    costs: [
      ...platformCosts(charged.fee, destination),
      { type: 'SWAP', stage: 'SENDING', provider: NAME, token: destination, amount: lpFee },
    ],
    priceImpact,
    steps,
    durationSeconds: secondsOfBlocks(chain, steps.length),
    atomic: false,
    warnings,
    expiresAtMs: deadlineSec * 1_000,
  }
}
