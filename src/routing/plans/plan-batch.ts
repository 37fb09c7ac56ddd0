import type { ChainDirectory } from '../../chains/chain-directory.ts'
import { readBatchTerms } from '../../contracts/contract-reads.ts'
import { encodeBatch } from '../../contracts/payment-calls.ts'
import { addressAt, uintAt } from '../../contracts/words.ts'
import { ZERO_ADDRESS } from '../../domain/address.ts'
import { isErc20 } from '../../domain/currency.ts'
import { ZERO } from '../../domain/decimal.ts'
import { type Explanation, explain } from '../../errors/waybill-error.ts'
import { batchGas, type PaymentGasFacts } from '../gas/gas.ts'
import type { Step } from '../gas/steps.ts'
import type { Payment } from '../question/parse-question.ts'
import { readApproval } from './approval.ts'
import { findContract, usedOn } from './configured-contract.ts'
import { chargedFor, platformCosts, proxyPayment, REQUEST_NETWORK, receiverReads } from './fee-proxy.ts'
import type { Plan } from './provider.ts'

/** Payments of one wallet in one token or coin, with one platform fee. */
export type Batch = readonly [Payment, ...Payment[]]

/**
 * Pays requests in one transaction, all or none, through a batch contract of Request Network. The contract takes a fee on the amounts for the
 * receiver of platform fees; without one the wallet itself is named, to which it returns.
 *
 * @see https://github.com/RequestNetwork/requestNetwork, BatchPayments and BatchNoConversionPayments
 */
export function planBatch(
  chains: ChainDirectory,
  batch: Batch,
  kind: 'BATCH_PAYMENTS' | 'BATCH_CONVERSION_PAYMENTS',
): Plan | Explanation {
  const { destination: token, wallet, platformFee } = batch[0]
  const found = findContract(chains, token, kind)
  if ('reason' in found) return found
  const { chain, contract } = found
  const isToken = isErc20(token)
  const proxyKind = isToken ? 'ERC20_FEE_PROXY' : 'ETHEREUM_FEE_PROXY'
  const proxies = chain.contracts.filter((each) => each.kind === proxyKind).map(({ address }) => address)
  const terms = readBatchTerms(contract, isToken)
  const approvals = readApproval(token, wallet, contract)
  const receivers = batch.map((payment) => receiverReads(chain, token, payment))
  const charged = batch.map(chargedFor)
  const amount = charged.reduce((sum, each) => sum + each.amount, 0n)
  const total = charged.reduce((sum, each) => sum + each.total, 0n)
  return {
    contracts: usedOn(chain.name, token.address, contract, ...proxies),
    reads: [...terms, ...approvals.reads, ...receivers.flatMap(({ reads }) => reads)],
    quote(state) {
      const approval = approvals.decode(state)
      if ('reason' in approval) return approval
      const [rate, limit] = terms.map((read) => uintAt(state.answerTo(read), 0))
      const [first, later] = terms.slice(2).map((read) => addressAt(state.answerTo(read), 0))
      const proxy = first ?? later
      // Payments through another proxy are not found.
      if (rate === undefined || proxy === undefined || !proxies.includes(proxy)) {
        const detail = `it pays through ${proxy ?? 'no proxy'}`
        return explain('CONTRACT_NOT_AS_CONFIGURED', { contract: kind, chain: chain.name, detail })
      }
      // In thousandths by BatchPayments, in ten thousandths by the later contracts, which take none of tokens where their limit is 0.
      const batchFee = isToken && limit === 0n ? 0n : (amount * rate) / (limit === undefined ? 1_000n : 10_000n)
      const returnsCoins = batchFee > 0n && !isToken && platformFee === undefined
      // Coins come with too little gas for a contract to take them back.
      if (returnsCoins && state.walletIsContract) return explain('NO_FEE_RECEIVER', { chain: chain.name })
      const feeAddress = platformFee?.receiver ?? (isToken || returnsCoins ? wallet : ZERO_ADDRESS)
      const payments = batch.map((payment) => ({ ...proxyPayment(payment, chargedFor(payment)), feeAddress }))
      const facts = receivers.map((receiver, i): PaymentGasFacts => {
        const { payeeIsNew, feeReceiver } = receiver.gasFacts(state, charged[i]?.fee)
        const isFirst = payments.findIndex(({ to }) => to === payments[i]?.to) === i
        return { payeeIsNew: payeeIsNew && isFirst, feeReceiver: i > 0 && feeReceiver ? 'KNOWN' : feeReceiver }
      })
      const most = total + batchFee
      const value = isToken ? 0n : most
      const pay: Step = {
        kind: 'PAY',
        gasLimit: batchGas(facts, isToken),
        transaction: () => ({ to: contract, data: encodeBatch(token.address, payments, first !== undefined), value }),
      }
      const steps = [...approval.upTo(most).steps, pay]
      const line = { type: 'PROTOCOL', stage: 'SENDING', provider: REQUEST_NETWORK, token, amount: batchFee } as const
      const ofContract = batchFee > 0n && feeAddress !== wallet ? [line] : []
      return {
        sourceAmount: total,
        maxPulled: most,
        received: amount,
        costs: [...platformCosts(platformFee && total - amount, token), ...ofContract],
        priceImpact: ZERO,
        steps,
        atomic: true,
      }
    },
  }
}
