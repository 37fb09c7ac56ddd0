import type { Address, Hex } from 'viem'
import { formatAmount, parseAmount } from '../../src/domain/decimal.ts'
import type { DemoFileChain } from '../demo-file.ts'
import { type ContractCall, encodeApprove, encodeErc20Payment, encodeNativePayment } from '../network/demo-contracts.ts'
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
  const payment = await demo.get<RefundedPayment>(`/v1/payments/${encodeURIComponent(id)}`)
  const terms = await chooseRefundTerms(demo, payment)
  say('refund', `${payment.amount} ${payment.currency}`, `from ${payment.payee}`, `to ${terms.to}`)
  say('reference', terms.paymentReference, terms.says)
  const chain = findDemoChain(demo, payment.network)
  const hash = await payBack(demo.rpcOf(chain), chain, { payment, terms }, { say, signal })
  const read = async () => {
    const now = await demo.get<RefundedPayment>(`/v1/payments/${id}`)
    return now.refunds.some(({ txHash }) => txHash === hash) ? now : undefined
  }
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
  if (paymentReference === undefined) throw new Error(`payment ${id} belongs to no request of the demo`)
  const { refundAddress, refundReference } = await readRequest(demo, paymentReference)
  if (refundAddress !== undefined && refundReference !== undefined) {
    const says = 'the refundReference of the request, which pays to its refundAddress'
    return { to: refundAddress as Address, paymentReference: refundReference as Hex, says }
  }
  if (payer === undefined)
    throw new Error(`the payer of payment ${id} is unknown, and its request has no refund address`)
  const says = 'the paymentReference of the request, which pays back to the payer'
  return { to: payer as Address, paymentReference: paymentReference as Hex, says }
}

/** @returns the hash of the refund */
async function payBack(
  rpc: Rpc,
  chain: DemoFileChain,
  { payment, terms }: { payment: RefundedPayment; terms: RefundTerms },
  { say, signal }: { say: Say; signal: AbortSignal },
): Promise<string> {
  const { payee } = payment
  const accounts = await rpc.call<string[]>('eth_accounts')
  if (!accounts.some((account) => account.toLowerCase() === payee.toLowerCase())) {
    throw new Error(`${payee} is not a merchant of the demo, so the demo has no key that can sign the refund`)
  }
  const coins = BigInt(await rpc.call<string>('eth_getBalance', [payee, 'latest']))
  if (coins < GAS_MONEY_WEI) {
    await rpc.call('anvil_setBalance', [payee, toQuantity(coins + GAS_MONEY_WEI)])
    say(
      'gas',
      payee,
      `+${formatAmount(GAS_MONEY_WEI, chain.native.decimals)} ${chain.native.symbol} for gas, set by the node`,
    )
  }
  const [symbol = ''] = payment.currency.split('-')
  const { units, decimals } = await readHolding(rpc, chain, { owner: payee, symbol })
  const amount = parseAmount(payment.amount, decimals) ?? 0n
  if (units < amount)
    throw new Error(`${payee} has only ${formatAmount(units, decimals)} ${symbol} left: too little for the refund`)
  let last = ''
  for (const [kind, call] of encodeRefund(chain, symbol, { ...terms, amount })) {
    const { to, data, value = 0n } = call
    const transaction = { from: payee, to, data, value: toQuantity(value), chainId: toQuantity(BigInt(chain.chainId)) }
    const { hash, blockNumber, gasUsed } = await sendTransaction(rpc, transaction, signal)
    say('sent', kind, hash, `block ${blockNumber}`, `gas ${gasUsed}`)
    last = hash
  }
  return last
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
