/** Calls of every method with every identifier of the account `shop` of the seeds. */
import type { JsonObject } from '@bufbuild/protobuf'
import type { Payment } from '../../src/domain/payment.ts'
import type { Values } from '../support/data/seed-payments.ts'
import { NOW } from '../support/service.ts'

export interface Probe {
  readonly name: string
  readonly request: JsonObject
  readonly headers?: Readonly<Record<string, string>>
  /** Whether the account itself gets the same answer as others, since the call holds no data of the account. */
  readonly tellsNothing?: boolean
}

const OWN_ID = '7e000000-0000-4000-8000-00000000aaaa'

/** A payment whose network and currencies have names that exist in no other account and in no table. */
export const ownNames: Payment = {
  id: OWN_ID,
  status: 'CONFIRMED',
  type: 'DIRECT',
  timestamp: NOW,
  updatedAt: NOW,
  amount: '7',
  currency: 'BEADS-SHOPNET',
  invoiceCurrency: 'CORALS',
  invoiceAmount: '70',
  amountInUsd: '0.7',
  network: 'SHOPNET',
  sourceNetwork: 'SHOPSOURCE',
  reference: 'INV-BEADS',
  fees: [],
  exchangeRates: [],
  refunds: [],
  refundedAmount: '0',
  statusHistory: [],
}

const DIRECT = 'REQUEST_NETWORK_PAYMENT'

/** @param cursors - from answers of the account */
export function describeProbes(
  values: Values,
  cursors: { next: string; prev: string; requests: string; begin: string; watch: string },
): Record<string, readonly Probe[]> {
  const value = (name: string): string => {
    const found = values[name]
    if (found === undefined) throw new Error(`the seeds made no ${name}`)
    return found
  }
  const terms = {
    payee: value('payee'),
    amount: '20',
    invoiceCurrency: 'USDC',
    paymentCurrency: 'USDC',
    network: 'ETHEREUM',
    salt: 'ab'.repeat(8),
  }
  const fresh = { ...terms, requestId: `01${'cd'.repeat(32)}` }
  const named = (request: JsonObject): Probe => ({ name: JSON.stringify(request), request })
  /** Each filter with values of the account, and with near names. */
  const filters = [
    named({ txHash: [value('paid.txHash')] }),
    named({ requestId: [value('paid.requestId'), value('refunded.requestId')] }),
    named({ paymentReference: [value('partial.paymentReference')] }),
    named({ reference: ['INV-2', 'INV-BEADS'] }),
    named({ q: 'INV-2' }),
    named({ payer: [value('payer')] }),
    named({ payee: [value('payee')] }),
    named({ walletAddress: [value('payer'), value('payee')] }),
    named({ network: ['SHOPNET'] }),
    named({ network: ['SHOPNTE'] }),
    named({ currency: ['BEADS'] }),
    named({ paymentCurrency: ['BEDAS'] }),
    named({ invoiceCurrency: ['CORALS'] }),
    named({ status: ['CONFIRMED', 'PENDING', 'REFUNDED'], type: ['DIRECT', 'CONVERSION'] }),
    named({ minAmount: '0.5', maxAmount: '1000000' }),
    named({ fromDate: '2026-03-01', toDate: '2026-03-02' }),
  ]
  return {
    'payments.v1.RoutesService/GetPaymentRoutes': [
      named({ paymentReference: value('open.paymentReference'), wallet: value('wallet.funded') }),
      named({ paymentReference: value('paid.paymentReference'), wallet: value('wallet.funded') }),
      named({
        paymentReference: value('open.paymentReference.bare'),
        wallet: value('wallet.empty'),
        amount: '1000',
        feePercentage: '1',
        feeAddress: value('platform'),
        sort: 'CHEAPEST',
        maxPriceImpact: '1',
        maxFeeRate: '1',
        chains: ['ETHEREUM'],
        tokens: ['USDC'],
      }),
    ],
    'payments.v1.RoutesService/StreamPaymentRoutes': [
      named({ paymentReference: value('open.paymentReference'), wallet: value('wallet.funded') }),
      named({ paymentReference: value('paid.paymentReference'), wallet: value('wallet.funded'), maxFeeRate: '0' }),
      named({
        paymentReference: value('open.paymentReference.bare'),
        wallet: value('wallet.funded'),
        amount: '1000',
        feePercentage: '1',
        feeAddress: value('platform'),
        sort: 'FASTEST',
        maxPriceImpact: '0',
        chains: ['ETHEREUM'],
        tokens: ['USDC'],
      }),
    ],
    'payments.v1.RoutesService/GetPaymentCalldata': [
      named({ paymentReference: value('open.paymentReference'), wallet: value('wallet.funded'), route: DIRECT }),
      named({ paymentReference: value('paid.paymentReference'), wallet: value('wallet.funded'), route: DIRECT }),
      named({
        paymentReference: value('open.paymentReference'),
        wallet: value('wallet.funded'),
        chain: 'ETHEREUM',
        token: 'USDC',
      }),
      named({
        paymentReference: value('open.paymentReference.bare'),
        wallet: value('wallet.funded'),
        amount: '10',
        feePercentage: '1',
        feeAddress: value('platform'),
        route: DIRECT,
        slippage: '1',
        maxSourceAmount: '20',
      }),
    ],
    'payments.v1.PaymentSearchService/GetPayment': [
      ...['paid', 'pending', 'tron', 'crosschain'].map((name) => named({ id: value(`${name}.paymentId`) })),
      named({ id: OWN_ID }),
      named({ id: OWN_ID.toUpperCase() }),
    ],
    'payments.v1.PaymentSearchService/SearchPayments': [
      named({ txHash: [value('paid.txHash')], includeTotal: 'EXACT' }),
      named({ requestId: [value('paid.requestId'), value('refunded.requestId')], includeTotal: 'ESTIMATED' }),
      named({ paymentReference: [value('partial.paymentReference')] }),
      named({ reference: ['INV-2', 'INV-BEADS'] }),
      ...[
        'INV-2',
        value('payer'),
        value('paid.txHash'),
        value('paid.requestId'),
        value('paid.paymentReference'),
        OWN_ID,
      ].map((q) => named({ q, includeTotal: 'EXACT' })),
      named({ payer: [value('payer')], includeTotal: 'EXACT' }),
      named({ payee: [value('payee')], includeTotal: 'EXACT' }),
      named({ walletAddress: [value('payer'), value('payee')], sortBy: 'AMOUNT', includeTotal: 'EXACT' }),
      named({ includeTotal: 'EXACT', limit: 1, sortBy: 'STATUS', sortOrder: 'ASC' }),
      named({ includeTotal: 'ESTIMATED' }),
      named({ cursor: cursors.next }),
      named({ cursor: cursors.prev }),
      named({ cursor: cursors.next, limit: 5, includeTotal: 'EXACT' }),
      named({ network: ['SHOPNET'] }),
      named({ network: ['SHOPNTE'] }),
      named({ network: ['SHOPSOURCE'] }),
      named({ network: ['SHOPSUORCE'] }),
      named({ currency: ['BEADS'] }),
      named({ currency: ['BEADS-SHOPNET'] }),
      named({ currency: ['BEDAS'] }),
      named({ currency: ['CORALS'] }),
      named({ currency: ['COARLS'] }),
      named({ paymentCurrency: ['BEADS'] }),
      named({ paymentCurrency: ['BEDAS'] }),
      named({ invoiceCurrency: ['CORALS'] }),
      named({ invoiceCurrency: ['COARLS'] }),
      named({ status: ['CONFIRMED', 'PENDING', 'REFUNDED'], type: ['DIRECT', 'CONVERSION'], includeTotal: 'EXACT' }),
      named({ minAmount: '0.5', maxAmount: '1000000', includeTotal: 'EXACT' }),
      named({ fromDate: '2026-03-01', toDate: '2026-03-02', includeTotal: 'EXACT' }),
    ],
    'payments.v1.PaymentSearchService/SummarizePayments': [
      ...filters,
      named({ groupBy: ['DAY', 'PAYER'], top: 1, timeZone: 'Asia/Kathmandu' }),
      named({ groupBy: ['PAYEE', 'CURRENCY'] }),
    ],
    'payments.v1.PaymentSearchService/ExportPayments': [
      ...filters,
      named({ format: 'CSV' }),
      named({ format: 'NDJSON', status: ['CONFIRMED'] }),
      named({ after: value('paid.paymentId') }),
      named({ after: OWN_ID }),
    ],
    'payments.v1.PaymentSearchService/WatchPayments': [
      named({}),
      ...filters.map(({ request }) => named({ ...request, watchCursor: cursors.begin })),
      named({ watchCursor: cursors.watch }),
      { name: 'behind an event', request: {}, headers: { 'last-event-id': cursors.watch } },
      { name: 'with a ticket beside the key', request: { ticket: `wt_${'a'.repeat(40)}` }, tellsNothing: true },
    ],
    'payments.v1.PaymentSearchService/CreateWatchTicket': [{ name: 'at all', request: {}, tellsNothing: true }],
    'payments.v1.RequestsService/GetPaymentRequest': ['open', 'paid', 'refunded', 'fiat'].map((name) =>
      named({ paymentReference: value(`${name}.paymentReference`) }),
    ),
    'payments.v1.RequestsService/ListPaymentRequests': [
      named({}),
      named({ status: ['PAID', 'REFUNDED', 'PENDING', 'PARTIALLY_PAID'], limit: 1 }),
      named({ cursor: cursors.requests }),
      named({ cursor: cursors.requests, includeTotal: 'EXACT' }),
      named({ reference: ['INV-1', 'INV-2'], includeTotal: 'EXACT' }),
      named({ requestId: [value('paid.requestId'), value('fiat.requestId')], includeTotal: 'ESTIMATED' }),
      named({ payee: [value('payee')], includeTotal: 'EXACT' }),
      named({ network: ['ETHEREUM'], includeTotal: 'EXACT' }),
      named({ network: ['SHOPNET'] }),
      named({ network: ['SHOPNTE'] }),
      named({ currency: ['USD', 'ETH'], includeTotal: 'EXACT' }),
      named({ currency: ['BEADS'] }),
      named({ currency: ['BEADS-SHOPNET'] }),
      named({ currency: ['BEDAS'] }),
      named({ fromDate: '2026-03-01', toDate: '2026-03-02', includeTotal: 'EXACT' }),
    ],
    // The last probe, since it changes the routes of the account's own request.
    'payments.v1.RequestsService/CancelPaymentRequest': [
      named({ paymentReference: value('native.paymentReference') }),
      named({ paymentReference: value('open.paymentReference.bare') }),
    ],
    'payments.v1.RequestsService/RemoveRefundWallet': [named({ address: value('wallet.empty') })],
    'payments.v1.RequestsService/AddRefundWallet': [
      named({ address: value('wallet.funded') }),
      { name: 'with a note', request: { address: value('wallet.funded'), note: 'mine' }, tellsNothing: true },
    ],
    'payments.v1.RequestsService/ListRefundWallets': [named({}), named({ includeRemoved: true })],
    'payments.v1.RequestsService/CreatePaymentRequest': [
      // The account's own id with other terms, which is refused for the account, too.
      { name: 'with a stored id', request: { ...terms, requestId: value('open.requestId') } },
      {
        name: 'with the salt of a stored request, and every other term',
        request: {
          ...terms,
          requestId: value('paid.requestId'),
          reference: 'INV-9',
          refundAddress: value('refundee'),
          expiresAt: '2026-12-31',
        },
      },
      { name: 'with a used idempotency key', request: fresh, headers: { 'idempotency-key': 'order-1' } },
      {
        name: 'for a payee and reference that are stored',
        request: { ...fresh, requestId: `01${'ce'.repeat(32)}`, reference: 'INV-1' },
        tellsNothing: true,
      },
    ],
  }
}
