import { type DemoRequest, type FoundPayment, type RunningDemo, readRequest, waitFor } from '../running-demo.ts'

/** The terms of the payment that is refunded: blocks of its chain are final first. */
const REFUNDED = {
  amount: '5',
  invoiceCurrency: 'USDC-ARBITRUM',
  paymentCurrency: 'USDC-ARBITRUM',
  network: 'ARBITRUM',
}
/** The wallet of demo.json that pays in tokens on any chain, and is refunded. */
const PAYER = 'direct'
const ROUTE = 'REQUEST_NETWORK_PAYMENT'

/** Writes a line: its subject, then the facts. */
export type Say = (subject: string, ...columns: readonly string[]) => void

/** What DemoService answers. */
interface Effect {
  readonly notSeenBecause?: string
  readonly txHashes?: readonly string[]
  readonly payments?: readonly FoundPayment[]
}

interface Paying {
  readonly wallet: string
  readonly route: string
  /** Of the request to pay; by default a new one like the first of demo.json, which itself keeps its documented state. */
  readonly paymentReference: string | undefined
}

/** Pays by a route as one of the demo's wallets, and reports the transactions and the payment as search finds it. */
export async function showPayment(demo: RunningDemo, { wallet, route, ...asked }: Paying, say: Say): Promise<void> {
  const paymentReference = asked.paymentReference ?? (await makeRequest(demo))
  await act(demo, 'pay', { paymentReference, wallet, route }, say)
}

/**
 * Refunds a payment as the demo's merchant would, mines until the refund is final, and reports the payment once it is REFUNDED.
 *
 * @param paymentId - by default a new payment of a request with a refund address
 */
export async function showRefund(
  demo: RunningDemo,
  paymentId: string | undefined,
  { say, signal }: { say: Say; signal: AbortSignal },
): Promise<void> {
  const id = paymentId ?? (await payNew(demo, say))
  await act(demo, 'refund', { paymentId: id }, say)
  const read = () => demo.get<{ status: string; network: string }>(`/v1/payments/${encodeURIComponent(id)}`)
  const { network } = await read()
  await act(demo, 'mine', { network }, say)
  const readReturned = async () => {
    const { status } = await read()
    return status === 'REFUNDED' ? status : undefined
  }
  say('refunded', `GET /v1/payments/${id}`, await waitFor('the status REFUNDED', readReturned, signal))
}

/** @returns the id of the payment */
async function payNew(demo: RunningDemo, say: Say): Promise<string> {
  const paymentReference = await makeRequest(demo, {
    ...REFUNDED,
    refundAddress: demo.file.wallets[PAYER]?.address ?? '',
  })
  const [payment] = await act(demo, 'pay', { paymentReference, wallet: PAYER, route: ROUTE }, say)
  return payment?.id ?? ''
}

/** @throws Error when the effect was not found; WaybillError that the API answers */
async function act(
  demo: RunningDemo,
  method: string,
  terms: Readonly<Record<string, string>>,
  say: Say,
): Promise<readonly FoundPayment[]> {
  const { notSeenBecause, txHashes = [], payments = [] } = await demo.post<Effect>(`/v1/demo/${method}`, terms)
  if (terms['paymentReference'] !== undefined) say('request', terms['paymentReference'])
  for (const hash of txHashes) say('sent', hash)
  for (const { id, amount, currency, status, type, payer, sourceNetwork } of payments)
    say('found', `payment ${id}`, `${amount} ${currency}`, status, type, `from ${payer} on ${sourceNetwork}`)
  if (notSeenBecause !== undefined) throw new Error(notSeenBecause)
  return payments
}

/** @returns the payment reference of a new request, with the terms of the first of demo.json where no others are given */
async function makeRequest(demo: RunningDemo, changes: Partial<DemoRequest> = {}): Promise<string> {
  const [first] = demo.file.requests
  if (first === undefined) throw new Error('demo.json names no requests')
  const { payee, amount, invoiceCurrency, paymentCurrency, network } = await readRequest(demo, first.paymentReference)
  const terms = { payee, amount, invoiceCurrency, paymentCurrency, network, ...changes }
  return (await demo.post<DemoRequest>('/v1/request', terms)).paymentReference
}
