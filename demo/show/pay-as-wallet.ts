import { formatAmount } from '../../src/domain/decimal.ts'
import { waybillError } from '../../src/errors/waybill-error.ts'
import type { DemoFileChain } from '../demo-file.ts'
import type { Rpc } from '../network/rpc.ts'
import {
  type CalldataTransaction,
  type DemoRequest,
  type FoundPayment,
  findDemoChain,
  makeRequest,
  type RunningDemo,
  readHolding,
  readRequest,
  searchOf,
  sendTransaction,
  waitForPayment,
} from '../running-demo.ts'

interface Calldata {
  route: {
    id: string
    provider: string
    chain: string
    chainId: string
    token: string
    sourceAmount: string
    feeAmount: string
    feeCurrency: string
    feeRate: number
    feeBreakdown: { type: string; amount: string; currency: string }[]
    warnings: { reason: string; message: string }[]
  }
  transactions: CalldataTransaction[]
  /** What each transaction does, in their order. */
  steps: { kind: string; message: string }[]
  maxSourceAmount: string
  warnings: { reason: string; message: string }[]
}

/** Writes a line: its subject, then the facts. */
export type Say = (subject: string, ...columns: readonly string[]) => void

/**
 * Pays by a route as one of the demo's wallets and reports each step: the quote, balances before, each transaction once it is mined, balances
 * after, and the payment as search finds it.
 *
 * @param paymentReference - of the request to pay; by default a new one like the first of demo.json
 * @throws Error when the API answers with an error or a transaction was reverted
 */
export async function payAsWallet(
  demo: RunningDemo,
  { wallet, route, paymentReference }: { wallet: string; route: string; paymentReference: string | undefined },
  { say, signal }: { say: Say; signal: AbortSignal },
): Promise<FoundPayment> {
  const request = await (paymentReference === undefined ? makeRequest(demo) : readRequest(demo, paymentReference))
  const calldata = await readCalldata(demo, request.paymentReference, { wallet, route })
  sayQuote(say, request, calldata)
  const chain = findDemoChain(demo, calldata.route.chainId)
  const before = await readBalances(demo, { wallet, request, calldata, chain })
  say(
    'before',
    ...before.map(({ whose, units, decimals, symbol }) => `${whose} ${formatAmount(units, decimals)} ${symbol}`),
  )
  const { paymentReference: reference } = request
  const hash = (await sendAll(demo.rpcOf(chain), calldata, { say, signal })).at(-1) ?? ''
  const found = await waitForPayment(demo, { paymentReference: reference, hash }, signal)
  if (found.txHash !== hash)
    say('delivered', found.type, found.txHash, `block ${found.blockNumber} of ${request.network}`)
  const after = await readBalances(demo, { wallet, request, calldata, chain })
  say(
    'after',
    ...after.map(({ whose, units, decimals, symbol }, i) => {
      const moved = formatAmount(units - (before[i]?.units ?? 0n), decimals)
      return `${whose} ${formatAmount(units, decimals)} ${symbol} (${moved.startsWith('-') ? '' : '+'}${moved})`
    }),
  )
  say('search', `GET ${searchOf(reference)}`)
  say(
    'found',
    `payment ${found.id}`,
    `${found.amount} ${found.currency}`,
    found.status,
    found.type,
    `from ${found.payer} on ${found.sourceNetwork}`,
  )
  return found
}

/** @param terms - the fields of GetPaymentCalldata */
export function readCalldata(
  demo: RunningDemo,
  paymentReference: string,
  terms: Readonly<Record<string, string>>,
): Promise<Calldata> {
  return demo.get(`/v1/request/${encodeURIComponent(paymentReference)}/pay?${new URLSearchParams(terms)}`)
}

function sayQuote(say: Say, request: DemoRequest, { route, maxSourceAmount, warnings }: Calldata): void {
  say('request', request.paymentReference, `${request.amount} ${request.invoiceCurrency} to ${request.payee}`)
  say(
    'quote',
    route.id,
    route.provider,
    `spends ${route.sourceAmount} ${route.token} on ${route.chain}`,
    `at most ${maxSourceAmount} ${route.token}`,
  )
  say('fee', `${route.feeAmount} ${route.feeCurrency}`, `${route.feeRate} of the amount that the payee receives`)
  for (const { type, amount, currency } of route.feeBreakdown) say('cost', type, `${amount} ${currency}`)
  for (const { reason, message } of [...route.warnings, ...warnings]) say('warning', reason, message)
}

interface Balance {
  whose: 'wallet' | 'payee'
  symbol: string
  units: bigint
  decimals: number
}

/** The wallet's balances of the token that it spends and of the coin for gas, and the payee's of the token that they receive. */
async function readBalances(
  demo: RunningDemo,
  {
    wallet,
    request,
    calldata: { route },
    chain,
  }: { wallet: string; request: DemoRequest; calldata: Calldata; chain: DemoFileChain },
): Promise<Balance[]> {
  const of = async (whose: Balance['whose'], at: DemoFileChain, owner: string, symbol: string): Promise<Balance> => ({
    whose,
    symbol,
    ...(await readHolding(demo.rpcOf(at), at, { owner, symbol })),
  })
  const spent = [...new Set([route.token, chain.native.symbol])].map((symbol) => of('wallet', chain, wallet, symbol))
  const [paid = ''] = request.paymentCurrency.split('-')
  const destination = findDemoChain(demo, request.network)
  return Promise.all([...spent, of('payee', destination, request.payee, paid)])
}

/**
 * Sends the transactions in order, each once the one before is mined.
 *
 * @returns their hashes
 * @throws WaybillError ROUTE_WOULD_FAIL where one is refused or reverted
 */
export async function sendAll(
  rpc: Rpc,
  { route, transactions, steps }: Calldata,
  { say, signal }: { say: Say; signal: AbortSignal },
): Promise<string[]> {
  const hashes: string[] = []
  for (const [place, transaction] of transactions.entries()) {
    const { kind, message } = steps[place] ?? { kind: '', message: '' }
    say('step', kind, message)
    const { hash, blockNumber, gasUsed } = await sendTransaction(rpc, transaction, signal).catch((cause: Error) => {
      if (signal.aborted) throw cause
      const failing = { route: route.id, step: kind, contract: transaction.to, chain: route.chain }
      throw waybillError('ROUTE_WOULD_FAIL', { ...failing, detail: cause.message }, { cause })
    })
    const limit = transaction.gas === undefined ? 'without a limit' : `of a limit of ${BigInt(transaction.gas)}`
    say('sent', kind, hash, `block ${blockNumber}`, `gas ${gasUsed} ${limit}`)
    hashes.push(hash)
  }
  return hashes
}
