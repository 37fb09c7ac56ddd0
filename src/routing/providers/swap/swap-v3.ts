import type { ChainDirectory } from '../../../chains/chain-directory.ts'
import type { ChainConfig, SwapV3Config } from '../../../chains/chains-file.ts'
import { readExactOutput, readSlot0 } from '../../../contracts/contract-reads.ts'
import type { ContractRead } from '../../../contracts/multicall.ts'
import { encodeExactOutputSwap } from '../../../contracts/payment-calls.ts'
import { encodeAddress, encodeUint, uintAt } from '../../../contracts/words.ts'
import type { Address } from '../../../domain/address.ts'
import { type Erc20, isErc20 } from '../../../domain/currency.ts'
import { type Explanation, explain } from '../../../errors/waybill-error.ts'
import { NEW_SLOT, withMarginForPools } from '../../gas/gas.ts'
import type { Step } from '../../gas/steps.ts'
import { readApproval } from '../../plans/approval.ts'
import { findContract, usedOn } from '../../plans/configured-contract.ts'
import { chargedFor, directTerms, payStep, platformCosts, receiverReads } from '../../plans/fee-proxy.ts'
import type { Plan, Provider } from '../../plans/provider.ts'
import { maxToSpend, type Payment } from '../../question/parse-question.ts'
import type { ChainState } from '../../scan/wallet-state.ts'
import { cheapestSwap, create2Address, explainCoin, isFirst, priceSwap, type SwapAmounts } from './swap-price.ts'

const NAME = 'uniswap-v3'

/** The exchange refuses the swap when it is mined later than this. */
const DEADLINE_SECONDS = 20 * 60

/** The gas of `exactOutputSingle` of SwapRouter02, without that of the pool. */
const ROUTER = 52_000n

/**
 * Swaps another token of the chain on a Uniswap-v3-compatible exchange into the payer's own wallet, and then pays. No contract does both in one
 * transaction. Between the two the wallet holds the payment currency, so the direct route can finish the payment.
 */
export function createSwapV3Provider(chains: ChainDirectory): Provider {
  return {
    name: NAME,
    kind: 'SWAP',
    plan(candidate, payment) {
      const { source, destination } = candidate
      const exchange = chains.config(source.chain)?.swapV3
      if (exchange === undefined) return undefined
      if (!isErc20(source) || !isErc20(destination)) return explainCoin(NAME, candidate, payment)
      const found = findContract(chains, destination, 'ERC20_FEE_PROXY')
      if ('reason' in found) return found
      return planSwap({ chain: found.chain, exchange, proxy: found.contract, source, destination, payment })
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

function planSwap(swap: Swap): Plan {
  const { chain, exchange, proxy, source, destination, payment } = swap
  const { router } = exchange
  const { amount, fee, total } = chargedFor(payment)
  const tiers = exchange.fees.map((fee) => tierOf(swap, fee, total))
  const toRouter = readApproval(source, payment.wallet, router)
  const toProxy = readApproval(destination, payment.wallet, proxy)
  const receivers = receiverReads(chain, destination, payment)
  const tierReads = tiers.flatMap(({ price, amount }) => [price, amount])
  return {
    contracts: usedOn(chain.name, source.address, destination.address, proxy, router),
    reads: [...toRouter.reads, ...toProxy.reads, ...tierReads, ...receivers.reads],
    quote(state, { priceOf }) {
      const [ofRouter, ofProxy] = [toRouter.decode(state), toProxy.decode(state)]
      if ('reason' in ofRouter) return ofRouter
      if ('reason' in ofProxy) return ofProxy
      const best = findBest(swap, tiers, total, state)
      if ('reason' in best) return best
      const limit = maxToSpend(best.amountIn, payment.limit)
      const deadlineSec = state.timestampSec + DEADLINE_SECONDS
      const held = state.balanceOf(destination) ?? 0n
      const balance = held + total
      // Swaps into the payer's own wallet.
      const encodeSwap = () =>
        encodeExactOutputSwap({
          tokenIn: source.address,
          tokenOut: destination.address,
          fee: best.fee,
          recipient: payment.wallet,
          amountOut: total,
          maxAmountIn: limit,
          deadlineSec,
        })
      const exchanging: Step = {
        kind: 'SWAP',
        // The pool's is measured by QuoterV2.
        gasLimit: withMarginForPools(ROUTER + best.poolGas + (held === 0n ? NEW_SLOT : 0n)),
        effect: { kind: 'BALANCE', token: destination.address, amount: balance },
        transaction: () => ({ to: router, data: encodeSwap(), value: 0n }),
      }
      const { steps: approve, allowance } = ofProxy.upTo(total)
      const pay = payStep(proxy, destination, payment, { gasFacts: receivers.gasFacts(state, fee), balance, allowance })
      const steps = [...ofRouter.upTo(limit).steps, exchanging, ...approve, pay]
      const { cost, ...price } = priceSwap(best, { exchange: NAME, source, destination, priceOf, received: amount })
      return {
        sourceAmount: best.amountIn,
        maxPulled: limit,
        received: amount,
        costs: [...platformCosts(fee, destination), cost],
        steps,
        atomic: false,
        ...price,
        expiresAtMs: deadlineSec * 1_000,
      }
    },
  }
}

function tierOf({ exchange, source, destination }: Swap, fee: number, amountOut: bigint): Tier {
  const [tokenIn, tokenOut] = [source.address, destination.address]
  const [first, second] = isFirst(tokenIn, tokenOut) ? [tokenIn, tokenOut] : [tokenOut, tokenIn]
  const terms = encodeAddress(first) + encodeAddress(second) + encodeUint(fee)
  const pool = create2Address(exchange.factory, exchange.poolCodeHash, `0x${terms}`)
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
): (SwapAmounts & { readonly fee: number; readonly poolGas: bigint }) | Explanation {
  const pair = { exchange: NAME, token: source.symbol, chain: chain.name, ...directTerms(payment) }
  const existing = tiers.filter(({ price }) => (uintAt(state.answerTo(price), 0) ?? 0n) > 0n)
  if (existing.length === 0) return explain('NO_POOL', pair)
  const possible = existing.flatMap(({ fee, price, amount }) => {
    const answer = state.answerTo(amount)
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
