import type { ChainDirectory } from '../../chains/chain-directory.ts'
import type { ConversionPath } from '../../chains/chains-file.ts'
import { addressesOfPath, findConversionPath, maxRateAgeSeconds } from '../../chains/conversion-path.ts'
import { readConversion } from '../../contracts/contract-reads.ts'
import type { ContractRead } from '../../contracts/multicall.ts'
import { encodeErc20Conversion, encodeNativeConversion } from '../../contracts/payment-calls.ts'
import { uintAt } from '../../contracts/words.ts'
import { FIAT_DECIMALS, isErc20, type Token } from '../../domain/currency.ts'
import { formatAmount, ZERO } from '../../domain/decimal.ts'
import { type Explanation, explain } from '../../errors/waybill-error.ts'
import { erc20ConversionGas, nativeConversionGas } from '../gas/gas.ts'
import type { Step } from '../gas/steps.ts'
import { readApproval } from '../plans/approval.ts'
import { findContract, usedOn } from '../plans/configured-contract.ts'
import { chargedFor, platformCosts, proxyPayment, REQUEST_NETWORK, receiverReads } from '../plans/fee-proxy.ts'
import type { Plan, Provider } from '../plans/provider.ts'
import { maxToSpend, type Payment } from '../question/parse-question.ts'
import type { ChainState } from '../scan/wallet-state.ts'

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
    plan: ({ source }, payment) => planConversion(chains, source, payment),
  }
}

/** @param token - what the payee receives: a token or the native coin */
function planConversion(chains: ChainDirectory, token: Token, payment: Payment): Plan | Explanation {
  const found = findContract(chains, token, isErc20(token) ? 'ERC20_CONVERSION_PROXY' : 'ETH_CONVERSION_PROXY')
  if ('reason' in found) return found
  const { chain, contract: proxy } = found
  const { invoiceCurrency } = payment.request
  const way = findConversionPath(chain.conversion, invoiceCurrency, token)
  if (chain.conversion === undefined || way === undefined) {
    return explain('NO_CONVERSION_PATH', { invoiceCurrency, token: token.symbol, chain: chain.name })
  }
  // The ChainlinkConversionPath.
  const { path: contract } = chain.conversion
  const path = addressesOfPath(way, token)
  // Amounts in the invoice currency, 8 decimals.
  const invoiced = chargedFor(payment)
  const reads = {
    amount: readConversion(contract, invoiced.amount, path),
    fee: readConversion(contract, invoiced.fee ?? 0n, path),
    rate: readConversion(contract, RATE_BASE, path),
  }
  const approvals = readApproval(token, payment.wallet, proxy)
  const receivers = receiverReads(chain, token, payment)
  const call = () => ({ ...proxyPayment(payment, invoiced), path, maxRateAgeSeconds: maxRateAgeSeconds(way) })
  return {
    contracts: usedOn(chain.name, token.address, proxy, contract),
    reads: [...Object.values(reads), ...approvals.reads, ...receivers.reads],
    quote(state) {
      const converted = convertedBy(way, payment, state, reads)
      if ('reason' in converted) return converted
      const approval = approvals.decode(state)
      if ('reason' in approval) return approval
      const { amount, total, staleAtSec } = converted
      const limit = maxToSpend(total, payment.limit)
      const fee = payment.platformFee && converted.fee
      const facts = receivers.gasFacts(state, fee)
      const feeds = path.length - 1
      const { steps: approve, allowance } = approval.upTo(limit)
      const [clearsAllowance, clearsBalance] = [allowance === total, state.balanceOf(token) === total]
      const pay: Step = isErc20(token)
        ? {
            kind: 'PAY',
            gasLimit: erc20ConversionGas({ ...facts, clearsAllowance, clearsBalance }, feeds),
            transaction: () => ({
              to: proxy,
              data: encodeErc20Conversion({ ...call(), maxToSpend: limit }),
              value: 0n,
            }),
          }
        : {
            kind: 'PAY',
            gasLimit: nativeConversionGas(facts, feeds),
            transaction: () => ({ to: proxy, data: encodeNativeConversion(call()), value: limit }),
          }
      const steps = [...approve, pay]
      return {
        sourceAmount: total,
        maxPulled: limit,
        received: amount,
        costs: platformCosts(fee, token),
        priceImpact: ZERO,
        steps,
        atomic: true,
        expiresAtMs: staleAtSec * 1_000,
      }
    },
  }
}

/**
 * Amounts in base units of the token at the current rate, each converted and truncated by itself as the proxy does.
 *
 * @returns also `staleAtSec`: when the proxy begins to refuse the rate as too old, in seconds since 1970
 */
function convertedBy(
  way: ConversionPath,
  payment: Payment,
  state: ChainState,
  reads: Readonly<Record<'amount' | 'fee' | 'rate', ContractRead>>,
) {
  const answer = state.answerTo(reads.amount)
  const [amount, oldestSec] = [uintAt(answer, 0), uintAt(answer, 1)]
  const [fee, rate] = [uintAt(state.answerTo(reads.fee), 0), uintAt(state.answerTo(reads.rate), 0)]
  const pair = { invoiceCurrency: way.from, token: way.token, chain: state.chain.name }
  if (amount === undefined || oldestSec === undefined || fee === undefined || !rate) return explain('NO_RATE', pair)
  if (amount === 0n) {
    return explain('CONVERSION_TOO_SMALL', {
      ...pair,
      amount: formatAmount(payment.amount, FIAT_DECIMALS),
      least: formatAmount((RATE_BASE + rate - 1n) / rate, FIAT_DECIMALS),
    })
  }
  const limitSeconds = maxRateAgeSeconds(way)
  const staleAtSec = Number(oldestSec) + limitSeconds
  if (staleAtSec < state.timestampSec) {
    return explain('RATE_STALE', { ...pair, ageSeconds: state.timestampSec - Number(oldestSec), limitSeconds })
  }
  return { amount, fee, total: amount + fee, staleAtSec }
}
