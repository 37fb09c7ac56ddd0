import { type Address, parseAddress } from '../../src/domain/address.ts'
import type { Payment } from '../../src/domain/payment.ts'
import type { Route, RoutesAnswer } from '../../src/domain/route.ts'
import type { PaymentPage } from '../../src/search/page/payment-search.ts'

/** The answers of all servers: a route of about 800 bytes, and a page of 50 payments of about 43 kB. */

const PAYMENTS = 50

function address(text: string): Address {
  const parsed = parseAddress(text)
  if (!parsed.ok) throw new Error(parsed.detail)
  return parsed.address
}

const hexOf = (n: number, digits: number) =>
  (n * 2_654_435_761).toString(16).padStart(digits, '1a2b3c4d5e6f').slice(0, digits)

function paymentOf(n: number): Payment {
  const timestamp = new Date(Date.UTC(2026, 2, 1, 12, 0, n))
  return {
    id: `${hexOf(n, 8)}-6f0e-8c55-9d3b-${hexOf(n + 1, 12)}`,
    status: 'CONFIRMED',
    type: 'DIRECT',
    timestamp,
    updatedAt: new Date(timestamp.getTime() + 6_789),
    amount: `${150.25 + n}`,
    currency: 'USDC-BASE',
    amountInUsd: `${150.26 + n}`,
    invoiceAmount: `${150.25 + n}`,
    invoiceCurrency: 'USD',
    network: 'BASE',
    chainId: 'eip155:8453',
    txHash: `0x${hexOf(n, 64)}`,
    blockNumber: 12_345_678n + BigInt(n),
    eventIndex: 0,
    sourceNetwork: 'BASE',
    sourceTxHash: `0x${hexOf(n, 64)}`,
    payer: address(`0x${hexOf(n, 40)}`),
    payee: address('0x3c44cdddb6a900fa2b585dd299e03d12fa4293bc'),
    paymentReference: `0x${hexOf(n, 16)}`,
    reference: `INV-2026-${n}`,
    fees: [],
    marks: [],
    exchangeRates: [],
    refunds: [],
    refundedAmount: '0',
    statusHistory: [{ status: 'CONFIRMED', at: '2026-03-01T12:00:06.789Z' }],
    confirmations: 65,
  }
}

/** A page of a search. */
export const page: PaymentPage = {
  payments: Array.from({ length: PAYMENTS }, (_, n) => paymentOf(n)),
  pagination: { limit: PAYMENTS, nextCursor: 'n'.repeat(180) },
  asOf: [{ network: 'BASE', block: 12_345_999n, time: new Date('2026-03-01T12:05:00Z') }],
  removed: [],
  watchCursor: 'w'.repeat(40),
}

const route: Route = {
  id: 'REQUEST_NETWORK_PAYMENT',
  fee: 0.315,
  speed: 'FAST',
  priceImpact: 0,
  chain: 'BASE',
  token: 'USDC',
  chainId: 'eip155:8453',
  tokenAddress: address('0x833589fcd6edb6e08f4c7c32d4f71b54bda02913'),
  sourceAmount: '150',
  feeAmount: '0.315',
  feeCurrency: 'USDC-BASE',
  feeInUsd: '0.315',
  feeIsComplete: true,
  feeRate: 0.0021,
  totalCost: 0.0021,
  feeBreakdown: [
    { type: 'GAS', stage: 'SENDING', amount: '0.00012', currency: 'ETH-BASE', amountInFeeCurrency: '0.315' },
  ],
  estimatedDurationSeconds: 4,
  provider: 'direct',
  tags: ['CHEAPEST', 'FASTEST'],
  expiresAt: new Date('2026-03-01T12:01:00Z'),
  warnings: [],
  atomic: true,
  readiness: { hasEnoughGas: true, needsApproval: true, steps: ['APPROVE', 'PAY'] },
}

/** The routes of a request. */
export const routes: RoutesAnswer = {
  routes: [route],
  amount: '150',
  currency: 'USDC-BASE',
  warnings: [],
  unavailable: [],
  degraded: false,
}
