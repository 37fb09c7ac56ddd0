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
  makeRequest,
  type RunningDemo,
  readHolding,
  readRequest,
  sendTransaction,
  waitFor,
} from '../running-demo.ts'
import { payAsWallet, type Say } from './pay-as-wallet.ts'

/** The wallet of demo.json that pays in tokens on any chain, and is refunded. */
const PAYER = 'direct'
const ROUTE = 'REQUEST_NETWORK_PAYMENT'
/** The chain whose blocks are final first. */
const CHAIN = 'ARBITRUM'
const AMOUNT = '5'
/** Gas for many approvals and refunds, because the demo's merchants have no coins. */
const GAS_MONEY_WEI = 10n ** 17n
/** Enough for the slowest chain. */
const FINALITY_MS = 30 * 60_000

/** The fields of a payment that a refund needs. */
interface RefundedPayment extends FoundPayment {
  readonly payee: string
  readonly refundedAmount: string
  readonly network: string
  readonly paymentReference?: string
  readonly refunds: readonly { readonly amount: string; readonly txHash: string }[]
}

/**
 * Refunds a payment as the demo's merchant would, from the payee's wallet through the fee proxy, and waits until it is REFUNDED.
 *
 * @param paymentId - by default a new payment of a request with a refund address
 * @throws Error when the API answers with an error or the demo cannot refund the payment
 */
export async function showRefund(
  demo: RunningDemo,
  paymentId: string | undefined,
  { say, signal }: { say: Say; signal: AbortSignal },
): Promise<void> {
  const id = paymentId ?? (await payNew(demo, { say, signal }))
  const { hashes, chain } = await refundPayment(demo, { paymentId: id }, { say, signal })
  const hash = hashes.at(-1) ?? ''
  const read = () => findRefunded(demo, id, hash)
  const seen = await waitFor(`the refund by transaction ${hash}`, read, signal)
  say('found', `GET /v1/payments/${id}`, seen.status, `${seen.refunds.at(-1)?.amount} refunded`)
  say('waits', `until the block of the refund is final on ${chain.name}: about a minute, on POLYGON about twenty`)
  const isReturned = async () => {
    const now = await read()
    return now?.status === 'REFUNDED' ? now : undefined
  }
  const returned = await waitFor('the status REFUNDED', isReturned, signal, FINALITY_MS)
  say('refunded', `GET /v1/payments/${id}`, returned.status)
}

/**
 * Sends a refund from the payee's wallet.
 *
 * @param terms.amount - of the payment's currency; by default all that is not refunded yet
 * @returns the hashes of its transactions, and their chain
 * @throws WaybillError INVALID_AMOUNT, INVALID_FIELD, and those of GetPayment; Error when a transaction was reverted
 */
export async function refundPayment(
  demo: RunningDemo,
  { paymentId, amount }: { paymentId: string; amount?: string | undefined },
  { say, signal }: { say: Say; signal: AbortSignal },
) {
  const payment = await demo.get<RefundedPayment>(`/v1/payments/${encodeURIComponent(paymentId)}`)
  const terms = await chooseRefundTerms(demo, payment)
  const chain = findDemoChain(demo, payment.network)
  const [symbol = ''] = payment.currency.split('-')
  const rpc = demo.rpcOf(chain)
  const holding = await readHolding(rpc, chain, { owner: payment.payee, symbol })
  const units = amountToRefund(payment, amount, holding)
  say('refund', `${formatAmount(units, holding.decimals)} ${symbol}`, `from ${payment.payee}`, `to ${terms.to}`)
  say('reference', terms.paymentReference, terms.says)
  const calls = encodeRefund(chain, symbol, { ...terms, amount: units })
  return { chain, hashes: await payBack(rpc, chain, { from: payment.payee, calls }, { say, signal }) }
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

/** @returns the id of the payment */
async function payNew(demo: RunningDemo, context: { say: Say; signal: AbortSignal }): Promise<string> {
  const wallet = demo.file.wallets[PAYER]?.address ?? ''
  const currency = `USDC-${CHAIN}`
  const terms = { amount: AMOUNT, invoiceCurrency: currency, paymentCurrency: currency, network: CHAIN }
  const { paymentReference } = await makeRequest(demo, { ...terms, refundAddress: wallet })
  return (await payAsWallet(demo, { wallet, route: ROUTE, paymentReference }, context)).id
}

interface RefundTerms {
  readonly to: Address
  readonly paymentReference: Hex
  readonly says: string
}

/** The refund goes to the refund address under its reference if the request has one, else to the payer under the request's own. */
async function chooseRefundTerms(demo: RunningDemo, payment: RefundedPayment): Promise<RefundTerms> {
  const { id, paymentReference, payer } = payment
  const refuse = (detail: string) => waybillError('INVALID_FIELD', { field: 'paymentId', detail })
  if (paymentReference === undefined) throw refuse(`payment ${id} belongs to no request`)
  const { refundAddress, refundReference } = await readRequest(demo, paymentReference)
  if (refundAddress !== undefined && refundReference !== undefined) {
    const says = 'the refundReference of the request, which pays to its refundAddress'
    return { to: refundAddress as Address, paymentReference: refundReference as Hex, says }
  }
  if (payer === undefined) throw refuse(`the payer of payment ${id} is unknown, and its request has no refund address`)
  const says = 'the paymentReference of the request, which pays back to the payer'
  return { to: payer as Address, paymentReference: paymentReference as Hex, says }
}

/** @returns the hashes of the transactions, of which the refund is the last */
async function payBack(
  rpc: Rpc,
  chain: DemoFileChain,
  { from, calls }: { from: string; calls: ReturnType<typeof encodeRefund> },
  { say, signal }: { say: Say; signal: AbortSignal },
): Promise<string[]> {
  const accounts = await rpc.call<string[]>('eth_accounts')
  const isOurs = accounts.some((account) => account.toLowerCase() === from.toLowerCase())
  // The node then sends for the address without its key.
  if (!isOurs) await rpc.call('anvil_impersonateAccount', [from])
  const coins = BigInt(await rpc.call<string>('eth_getBalance', [from, 'latest']))
  const chainId = toQuantity(BigInt(chain.chainId))
  if (coins < GAS_MONEY_WEI) {
    // A transaction, which a reorg takes along with the refund.
    const giver = accounts[SPOOFER_PLACE] ?? ''
    const gift = { from: giver, to: from, data: '0x', value: toQuantity(GAS_MONEY_WEI), chainId }
    const { hash } = await sendTransaction(rpc, gift, signal)
    say('gas', from, `+${formatAmount(GAS_MONEY_WEI, chain.native.decimals)} ${chain.native.symbol} for gas`, hash)
  }
  const hashes: string[] = []
  for (const [kind, { to, data, value = 0n }] of calls) {
    const transaction = { from, to, data, value: toQuantity(value), chainId }
    const { hash, blockNumber, gasUsed } = await sendTransaction(rpc, transaction, signal)
    say('sent', kind, hash, `block ${blockNumber}`, `gas ${gasUsed}`)
    hashes.push(hash)
  }
  return hashes
}

function encodeRefund(
  { tokens, contracts }: DemoFileChain,
  symbol: string,
  terms: { to: Address; paymentReference: Hex; amount: bigint },
): readonly (readonly [string, ContractCall])[] {
  const token = tokens.find((each) => each.symbol === symbol)?.address
  if (token === undefined) return [['REFUND', encodeNativePayment(contracts.ethereumFeeProxy, terms, true)]]
  const proxy = contracts.erc20FeeProxy
  return [
    ['APPROVE', encodeApprove(token, proxy, terms.amount)],
    ['REFUND', encodeErc20Payment(proxy, token, terms)],
  ]
}
