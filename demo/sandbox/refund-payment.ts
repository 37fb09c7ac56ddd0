import type { Address, Hex } from 'viem'
import { formatAmount, parseAmount } from '../../src/domain/decimal.ts'
import { waybillError } from '../../src/errors/waybill-error.ts'
import type { DemoFileChain } from '../demo-file.ts'
import { type ContractCall, encodeApprove, encodeErc20Payment, encodeNativePayment } from '../network/demo-contracts.ts'
import { SPOOFER_PLACE } from '../network/people.ts'
import { type Rpc, toQuantity } from '../network/rpc.ts'
import {
  type FoundPayment,
  findDemoChain,
  type RunningDemo,
  readHolding,
  readRequest,
  sendTransaction,
} from '../running-demo.ts'
import type { Enqueue } from './wallet-queues.ts'

/** Gas for many approvals and refunds, because the demo's merchants have no coins. */
const GAS_MONEY_WEI = 10n ** 17n

/** The fields of a payment that a refund needs. */
interface RefundedPayment extends FoundPayment {
  readonly payee: string
  readonly refundedAmount: string
  readonly network: string
  readonly paymentReference?: string
  readonly refunds: readonly { readonly amount: string; readonly txHash: string }[]
}

/**
 * Refunds a payment as its merchant would, from the payee's wallet through the fee proxy.
 *
 * @param terms.amount - of the payment's currency; by default all that is not refunded yet
 * @returns the hashes of the transactions, of which the refund is the last
 * @throws WaybillError INVALID_AMOUNT, INVALID_FIELD, also where a transaction is refused or reverted, and those of GetPayment
 */
export async function refundPayment(
  demo: RunningDemo,
  { paymentId, amount }: { paymentId: string; amount?: string | undefined },
  within: Within,
): Promise<string[]> {
  const payment = await demo.get<RefundedPayment>(`/v1/payments/${encodeURIComponent(paymentId)}`)
  const terms = await chooseRefundTerms(demo, payment)
  const chain = findDemoChain(demo, payment.network)
  const [symbol = ''] = payment.currency.split('-')
  const rpc = demo.rpcOf(chain)
  return within.enqueue(payment.payee, async () => {
    const holding = await readHolding(rpc, chain, { owner: payment.payee, symbol })
    const calls = encodeRefund(chain, symbol, { ...terms, amount: amountToRefund(payment, amount, holding) })
    return payBack(rpc, chain, { from: payment.payee, calls }, within).catch((cause: Error) => {
      if (within.signal.aborted) throw cause
      const detail = `its refund failed: ${cause.message}`
      throw waybillError('INVALID_FIELD', { field: 'paymentId', detail }, { cause })
    })
  })
}

interface Within {
  readonly signal: AbortSignal
  readonly enqueue: Enqueue
}

/** @returns base units */
function amountToRefund(
  payment: RefundedPayment,
  amount: string | undefined,
  { units, decimals }: { units: bigint; decimals: number },
): bigint {
  const parse = (text: string) => parseAmount(text, decimals) ?? 0n
  const kept = parse(payment.amount) - parse(payment.refundedAmount)
  const wanted = amount === undefined ? kept : parse(amount)
  const most = units < kept ? units : kept
  if (wanted > 0n && wanted <= most) return wanted
  const left = `${formatAmount(most, decimals)} ${payment.currency}`
  const detail = `of the payment, ${left} can be refunded`
  throw waybillError('INVALID_AMOUNT', { field: 'amount', value: amount ?? formatAmount(kept, decimals), detail })
}

/** The payment once it has a refund by a transaction. */
export async function findRefunded(demo: RunningDemo, id: string, hash: string): Promise<RefundedPayment | undefined> {
  const payment = await demo.get<RefundedPayment>(`/v1/payments/${encodeURIComponent(id)}`)
  return payment.refunds.some(({ txHash }) => txHash === hash) ? payment : undefined
}

/** The refund goes to the refund address under its reference if the request has one, else to the payer under the request's own. */
async function chooseRefundTerms(demo: RunningDemo, payment: RefundedPayment) {
  const { id, paymentReference, payer } = payment
  const refuse = (detail: string) => waybillError('INVALID_FIELD', { field: 'paymentId', detail })
  if (paymentReference === undefined) throw refuse(`payment ${id} belongs to no request`)
  const { refundAddress, refundReference } = await readRequest(demo, paymentReference)
  if (refundAddress !== undefined && refundReference !== undefined)
    return { to: refundAddress as Address, paymentReference: refundReference as Hex }
  if (payer === undefined) throw refuse(`the payer of payment ${id} is unknown, and its request has no refund address`)
  return { to: payer as Address, paymentReference: paymentReference as Hex }
}

async function payBack(
  rpc: Rpc,
  chain: DemoFileChain,
  { from, calls }: { from: string; calls: readonly ContractCall[] },
  { signal, enqueue }: Within,
): Promise<string[]> {
  const accounts = await rpc.call<string[]>('eth_accounts')
  const isOurs = accounts.some((account) => account.toLowerCase() === from.toLowerCase())
  // The node then sends for the address without its key.
  if (!isOurs) await rpc.call('anvil_impersonateAccount', [from])
  const coins = BigInt(await rpc.call<string>('eth_getBalance', [from, 'latest']))
  const refunded = calls.reduce((sum, { value = 0n }) => sum + value, 0n)
  const chainId = toQuantity(BigInt(chain.chainId))
  if (coins < refunded + GAS_MONEY_WEI) {
    // A transaction, which a reorg takes along with the refund.
    const giver = accounts[SPOOFER_PLACE] ?? ''
    const gift = { from: giver, to: from, data: '0x', value: toQuantity(GAS_MONEY_WEI), chainId }
    await enqueue(giver, () => sendTransaction(rpc, gift, signal))
  }
  const hashes: string[] = []
  for (const { to, data, value = 0n } of calls)
    hashes.push(await sendTransaction(rpc, { from, to, data, value: toQuantity(value), chainId }, signal))
  return hashes
}

function encodeRefund(
  { tokens, contracts }: DemoFileChain,
  symbol: string,
  terms: { to: Address; paymentReference: Hex; amount: bigint },
): readonly ContractCall[] {
  const token = tokens.find((each) => each.symbol === symbol)?.address
  if (token === undefined) return [encodeNativePayment(contracts.ethereumFeeProxy, terms, true)]
  const proxy = contracts.erc20FeeProxy
  return [encodeApprove(token, proxy, terms.amount), encodeErc20Payment(proxy, token, terms)]
}
