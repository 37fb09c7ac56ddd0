import type { ChainDirectory } from '../../chains/chain-directory.ts'
import type { ChainConfig, ConversionPath } from '../../chains/chains-file.ts'
import { addressesOfPath, findConversionPath, maxRateAgeSeconds } from '../../chains/conversion-path.ts'
import { readAllowance, readConversion } from '../../contracts/contract-reads.ts'
import type { ContractRead } from '../../contracts/multicall.ts'
import { encodeErc20Conversion, encodeNativeConversion } from '../../contracts/payment-calls.ts'
import { uintAt } from '../../contracts/words.ts'
import type { Address } from '../../domain/address.ts'
import { FIAT_DECIMALS, type Token } from '../../domain/currency.ts'
import { formatAmount, ZERO } from '../../domain/decimal.ts'
import { type Explanation, explain } from '../../errors/waybill-error.ts'
import { maxToSpend, type Payment, platformFeeOf } from '../due-payment.ts'
import type { ChainState } from '../looks/wallet-state.ts'
import { type ConversionGasFacts, erc20ConversionGas, nativeConversionGas } from '../quotes/gas.ts'
import type { Step } from '../quotes/steps.ts'
import { approvalSteps } from './approval.ts'
import { explainNoContract, explainUnreadable, newestContract, secondsOfBlocks, usedOn } from './configured-contract.ts'
import { platformCosts, proxyPayment, REQUEST_NETWORK } from './fee-proxy.ts'
import type { Plan, Provider, Quote } from './provider.ts'
import { receiverReads } from './receivers.ts'

/** The contract scales its rates by this, so converting this amount gives the rate itself. */
const RATE_BASE = 10n ** 18n

/**
 * Pays a fiat request in its payment currency through Request's conversion proxies. They are given the amount in the invoice currency, and
 * convert it by price feeds when the transaction is mined: what the wallet spends follows the rate, up to the payment's limit.
 *
 * @see https://github.com/RequestNetwork/requestNetwork, Erc20ConversionProxy and EthConversionProxy
 */
export function createConversionProvider(chains: ChainDirectory): Provider {
  return {
    name: REQUEST_NETWORK,
    kind: 'CONVERSION',
    plan({ source }, payment) {
      const chain = chains.config(source.chain)
      const kind = source.address === undefined ? 'ETH_CONVERSION_PROXY' : 'ERC20_CONVERSION_PROXY'
      const proxy = chain && newestContract(chain, kind)
      if (chain === undefined || proxy === undefined) {
        return explainNoContract(source, kind)
      }
      const from = payment.request.invoiceCurrency
      const way = findConversionPath(chain.conversion, from, source)
      if (chain.conversion === undefined || way === undefined) {
        return explain('NO_CONVERSION_PATH', { invoiceCurrency: from, token: source.symbol, chain: chain.name })
      }
      return planConversion({ chain, proxy, token: source, payment, way, contract: chain.conversion.path })
    },
  }
}

interface Conversion {
  readonly chain: ChainConfig
  readonly proxy: Address
  /** What the payee receives: a token or the native coin. */
  readonly token: Token
  readonly payment: Payment
  readonly way: ConversionPath
  /** The ChainlinkConversionPath. */
  readonly contract: Address
}

/** Amounts in the invoice currency, 8 decimals. */
interface Invoiced {
  readonly amount: bigint
  readonly fee: bigint
}

function planConversion(conversion: Conversion): Plan {
  const { chain, proxy, token, payment, contract } = conversion
  const path = addressesOfPath(conversion.way, token)
  const invoiced = invoicedOf(payment)
  const amountRead = readConversion(contract, invoiced.amount, path)
  const feeRead = readConversion(contract, invoiced.fee, path)
  const rateRead = readConversion(contract, RATE_BASE, path)
  const allowanceRead = token.address && readAllowance(token.address, payment.wallet, proxy)
  const receivers = receiverReads(chain, token, payment)
  return {
    contracts: usedOn(chain.name, token.address, proxy, contract),
    reads: [amountRead, feeRead, rateRead, ...(allowanceRead === undefined ? [] : [allowanceRead]), ...receivers.reads],
    quote(state) {
      const converted = convertedBy(conversion, state, { amountRead, feeRead, rateRead })
      if ('reason' in converted) return converted
      const allowance = allowanceRead && uintAt(state.answerTo(allowanceRead), 0)
      if (allowanceRead !== undefined && allowance === undefined) return explainUnreadable(token, 'its allowance')
      const facts = { ...receivers.gasFacts(state, payment.platformFee && converted.fee), feeds: path.length - 1 }
      return quoteOf(conversion, converted, stepsOf(conversion, { path, invoiced, converted, allowance, facts, state }))
    },
  }
}

function invoicedOf({ amount, platformFee }: Payment): Invoiced {
  return { amount, fee: platformFee === undefined ? 0n : platformFeeOf(amount, platformFee.percentage) }
}

/** Amounts in base units of the token at the current rate, each converted and truncated by itself as the proxy does. */
interface Converted {
  readonly amount: bigint
  readonly fee: bigint
  readonly total: bigint
  /** The most that the wallet may spend. */
  readonly limit: bigint
  /** When the proxy begins to refuse the rate as too old, in seconds since 1970. */
  readonly staleAtSec: number
}

interface ConversionReads {
  readonly amountRead: ContractRead
  readonly feeRead: ContractRead
  readonly rateRead: ContractRead
}

function convertedBy(
  { way, chain, payment }: Conversion,
  state: ChainState,
  { amountRead, feeRead, rateRead }: ConversionReads,
): Converted | Explanation {
  const answer = state.answerTo(amountRead) ?? ''
  const [amount, oldestSec] = [uintAt(answer, 0), uintAt(answer, 1)]
  const fee = uintAt(state.answerTo(feeRead), 0)
  const rate = uintAt(state.answerTo(rateRead), 0)
  const pair = { invoiceCurrency: way.from, token: way.token, chain: chain.name }
  if (amount === undefined || oldestSec === undefined || fee === undefined || !rate) return explain('NO_RATE', pair)
  if (amount === 0n) {
    return explain('CONVERSION_TOO_SMALL', {
      ...pair,
      amount: formatAmount(payment.amount, FIAT_DECIMALS),
      least: formatAmount((RATE_BASE + rate - 1n) / rate, FIAT_DECIMALS),
    })
  }
  const staleAtSec = Number(oldestSec) + maxRateAgeSeconds(way)
  if (staleAtSec < state.timestampSec) {
    return explain('RATE_STALE', {
      ...pair,
      ageSeconds: state.timestampSec - Number(oldestSec),
      limitSeconds: maxRateAgeSeconds(way),
    })
  }
  const total = amount + fee
  return { amount, fee, total, limit: maxToSpend(total, payment.limit), staleAtSec }
}

interface Stepping {
  readonly path: readonly Address[]
  readonly invoiced: Invoiced
  readonly converted: Converted
  /** undefined for the native coin. */
  readonly allowance: bigint | undefined
  readonly facts: ConversionGasFacts
  readonly state: ChainState
}

function stepsOf({ proxy, token, payment, way }: Conversion, stepping: Stepping): Step[] {
  const { path, invoiced, converted, allowance, facts, state } = stepping
  const { limit, total } = converted
  const call = () => ({ ...proxyPayment(payment, invoiced), path, maxRateAgeSeconds: maxRateAgeSeconds(way) })
  if (token.address === undefined || allowance === undefined) {
    const transaction = () => ({ to: proxy, data: encodeNativeConversion(call()), value: limit })
    return [{ kind: 'PAY', gasLimit: nativeConversionGas(facts), transaction }]
  }
  const erc20 = { ...token, address: token.address }
  const approvals = approvalSteps({ token: erc20, spender: proxy, allowance, need: limit })
  const transaction = () => ({ to: proxy, data: encodeErc20Conversion({ ...call(), maxToSpend: limit }), value: 0n })
  const gasLimit = erc20ConversionGas({
    ...facts,
    clearsAllowance: (approvals.length > 0 ? limit : allowance) === total,
    clearsBalance: state.balanceOf(token) === total,
  })
  return [...approvals, { kind: 'PAY', gasLimit, transaction }]
}

function quoteOf({ chain, token, payment }: Conversion, converted: Converted, steps: readonly Step[]): Quote {
  return {
    sourceAmount: converted.total,
    maxPulled: converted.limit,
    received: converted.amount,
    costs: platformCosts(payment.platformFee && converted.fee, token),
    priceImpact: ZERO,
    steps,
    durationSeconds: secondsOfBlocks(chain, steps.length),
    atomic: true,
    expiresAtMs: converted.staleAtSec * 1_000,
  }
}
