/**
 * Measures the gas of payments in one transaction of each batch contract against the same payments alone, on a chain of its own. Payees hold
 * some of the token or coin already; approvals are left out.
 *
 *   npm run bench:batch-gas
 */
import { type Hex, parseAbi } from 'viem'
import { encodeFunctionData } from 'viem/utils'
import {
  encodeBatch,
  encodeErc20Payment,
  encodeNativePayment,
  type ProxyPayment,
} from '../../src/contracts/payment-calls.ts'
import { ZERO_ADDRESS } from '../../src/domain/address.ts'
import { deployBatchConversionPayments } from '../../test/detection/request-contracts.ts'
import { startTestChain } from '../../test/support/chains/chain.ts'
import { canonical, freshAddress } from '../../test/support/routing.ts'
import { type Figure, report } from '../report.ts'

const chain = await startTestChain()
const { USDC } = chain.tokens
const [payer] = chain.wallets
const { erc20FeeProxy, ethereumFeeProxy, batchPayments } = chain.contracts
const later = await deployBatchConversionPayments(chain)
const abi = parseAbi(['function setBatchFeeAmountUSDLimit(uint64 limit)'])
await chain.send(chain.deployer, { to: later, data: encodeFunctionData({ abi, args: [10n ** 12n] }) })
await chain.fund(USDC, payer, 10n ** 15n)
for (const spender of [erc20FeeProxy, batchPayments, later]) await chain.approve(payer, USDC, spender, 10n ** 15n)

const payments = Array.from({ length: 100 }, (_, i): ProxyPayment => {
  const paymentReference = `0x${(i + 1).toString(16).padStart(16, 'a')}` as const
  return {
    to: freshAddress(`payee ${i}`),
    amount: 1_234_567n,
    paymentReference,
    feeAmount: 0n,
    feeAddress: canonical(payer),
  }
})
const gasOf = async (to: Hex, data: Hex, value = 0n) =>
  Number((await chain.send(payer, { to, data, value }, { gas: 29_000_000n })).gasUsed)

const figures: Figure[] = []
try {
  for (const token of [canonical(USDC.address), undefined]) {
    const name = token === undefined ? 'coins' : 'token'
    const alone = async () => {
      const [payment] = payments as [ProxyPayment]
      const unpaid = { ...payment, feeAddress: ZERO_ADDRESS }
      return token === undefined
        ? gasOf(ethereumFeeProxy, encodeNativePayment(unpaid), payment.amount)
        : gasOf(erc20FeeProxy, encodeErc20Payment(token, unpaid))
    }
    const together = async (count: number, isFirstKind: boolean) => {
      const part = payments.slice(0, count)
      const value = token === undefined ? part.reduce((sum, { amount }) => sum + amount, 0n) : 0n
      return (await gasOf(isFirstKind ? batchPayments : later, encodeBatch(token, part, isFirstKind), value)) / count
    }
    // The first payments make the balances of payees.
    for (const isFirstKind of [true, false]) await together(100, isFirstKind)
    await alone()
    const single = await alone()
    figures.push({ name: `${name}.alone`, value: single, unit: 'gas' })
    for (const isFirstKind of [true, false]) {
      for (const count of [1, 2, 10, 100]) {
        const each = await together(count, isFirstKind)
        const kind = isFirstKind ? 'BatchPayments' : 'BatchConversionPayments'
        figures.push({ name: `${name}.${kind}.${count}`, value: each, unit: 'gas a payment' })
        if (count === 100) figures.push({ name: `${name}.${kind}.100/alone`, value: each / single, unit: '×' })
      }
    }
  }
  await report('batch-gas', figures)
} finally {
  await chain.stop()
}
