import type { ChainConfig } from '../../chains/chains-file.ts'
import type { ContractRead } from '../../contracts/multicall.ts'
import { encodeErc20Payment, encodeNativePayment, type ProxyPayment } from '../../contracts/payment-calls.ts'
import { uintAt } from '../../contracts/words.ts'
import { type Address, ZERO_ADDRESS } from '../../domain/address.ts'
import { isErc20, type Token } from '../../domain/currency.ts'
import { formatAmount } from '../../domain/decimal.ts'
import type { FeeStage } from '../../domain/payment.ts'
import { erc20PaymentGas, nativePaymentGas, type PaymentGasFacts } from '../gas/gas.ts'
import type { Step, Transaction } from '../gas/steps.ts'
import { type Payment, platformFeeOf } from '../question/parse-question.ts'
import { type ChainState, readBalance } from '../scan/wallet-state.ts'
import type { CostLine } from './costs.ts'

/** Request's contracts, as routes and fee lines name them. */
export const REQUEST_NETWORK = 'request-network'

/**
 * What a payment through the fee proxy takes from the wallet, in base units of what is paid: the amount, and on top of it the platform's fee,
 * which is undefined where the caller asked for none.
 */
export function chargedFor({ amount, platformFee }: Payment) {
  const fee = platformFee && platformFeeOf(amount, platformFee.percentage)
  return { amount, fee, total: amount + (fee ?? 0n) }
}

/** What {@link chargedFor} gives. */
export type Charged = ReturnType<typeof chargedFor>

/** The platform's fee as a cost. The fee proxy takes it, wherever the payment comes from. @param fee - undefined where the caller asked for none */
export function platformCosts(fee: bigint | undefined, token: Token, stage: FeeStage = 'SENDING'): CostLine[] {
  return fee === undefined ? [] : [{ type: 'PLATFORM', stage, provider: REQUEST_NETWORK, token, amount: fee }]
}

/** The terms of remedies that advise to pay in the payment currency itself, which always works. */
export function directTerms(payment: Payment) {
  const { symbol, chain, decimals } = payment.destination
  return { need: formatAmount(chargedFor(payment).total, decimals), paymentToken: symbol, destinationChain: chain }
}

/** The call of the ERC-20 fee proxy, which must be allowed to pull the token. */
export function erc20Payment(proxy: Address, token: Address, payment: Payment, charged: Charged): Transaction {
  return { to: proxy, data: encodeErc20Payment(token, proxyPayment(payment, charged)), value: 0n }
}

/** What is known before a payment through the fee proxy. */
interface PaymentFacts {
  readonly gasFacts: PaymentGasFacts
  /** What the wallet holds of the token, and what the proxy may pull of it. */
  readonly balance: bigint | undefined
  readonly allowance: bigint
}

/** The payment itself, by the fee proxy of its token or coin. A call of the native proxy brings amount and fee. */
export function payStep(proxy: Address, token: Token, payment: Payment, facts: PaymentFacts): Step {
  const charged = chargedFor(payment)
  const { gasFacts, balance, allowance } = facts
  if (!isErc20(token)) {
    const data = () => encodeNativePayment(proxyPayment(payment, charged))
    const transaction = () => ({ to: proxy, data: data(), value: charged.total })
    return { kind: 'PAY', gasLimit: nativePaymentGas(gasFacts), transaction }
  }
  const [clearsAllowance, clearsBalance] = [allowance === charged.total, balance === charged.total]
  return {
    kind: 'PAY',
    gasLimit: erc20PaymentGas({ ...gasFacts, clearsAllowance, clearsBalance }),
    transaction: () => erc20Payment(proxy, token.address, payment, charged),
  }
}

/** What the call of a proxy says of a payment. */
export function proxyPayment(
  { request, platformFee }: Payment,
  charged: Pick<Charged, 'amount' | 'fee'>,
): ProxyPayment {
  return {
    to: request.payee,
    amount: charged.amount,
    paymentReference: request.paymentReference,
    feeAmount: charged.fee ?? 0n,
    feeAddress: platformFee?.receiver ?? ZERO_ADDRESS,
  }
}

/** The reads that tell whether payee and fee receiver hold any of a token: a payment to an empty balance takes more gas. */
export function receiverReads(chain: ChainConfig, token: Token, { request, platformFee }: Payment) {
  const payee = readBalance(chain, token, request.payee)
  const feeReceiver = readBalance(chain, token, platformFee?.receiver ?? ZERO_ADDRESS)
  const holdsNothing = (state: ChainState, read: ContractRead) => uintAt(state.answerTo(read), 0) === 0n
  return {
    reads: platformFee === undefined ? [payee] : [payee, feeReceiver],
    gasFacts(state: ChainState, fee: bigint | undefined): PaymentGasFacts {
      const payeeIsNew = holdsNothing(state, payee)
      if (fee === undefined || fee === 0n) return { payeeIsNew }
      const sameReceiver = platformFee?.receiver === request.payee
      return { payeeIsNew, feeReceiver: !sameReceiver && holdsNothing(state, feeReceiver) ? 'NEW' : 'KNOWN' }
    },
  }
}
