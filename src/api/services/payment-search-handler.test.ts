import { create, toJson } from '@bufbuild/protobuf'
import { createContextValues, createHandlerContext } from '@connectrpc/connect'
import { expect, test } from 'vitest'
import { PaymentSchema } from '../../../gen/payments/v1/payment_pb.js'
import {
  PaymentSearchService,
  SearchPaymentsRequest_IncludeTotal,
  SearchPaymentsRequest_SortBy,
  SearchPaymentsRequest_SortOrder,
  SearchPaymentsRequestSchema,
  SearchPaymentsResponseSchema,
} from '../../../gen/payments/v1/payment_search_service_pb.js'
import { type Address, parseAddress } from '../../domain/address.ts'
import { type Payment, paymentStatuses, paymentTypes } from '../../domain/payment.ts'
import type { SearchInput } from '../../search/filter/payment-filter.ts'
import type { PaymentPage } from '../../search/page/payment-search.ts'
import type { PaymentReads } from '../../search/payment-reads.ts'
import { callerKey } from '../calls/call.ts'
import { createPaymentSearchHandlers } from './payment-search-handler.ts'
import { createPaymentToProto } from './payment-to-proto.ts'

const account = { id: 4, name: 'acme' }
const context = createHandlerContext({
  service: PaymentSearchService,
  method: PaymentSearchService.method.searchPayments,
  protocolName: 'grpc',
  requestMethod: 'POST',
  url: '/',
  contextValues: createContextValues().set(callerKey, { account, keyId: 'key' }),
})

function address(text: string): Address {
  const parsed = parseAddress(text)
  if (!parsed.ok) throw new Error(parsed.detail)
  return parsed.address
}

const least: Payment = {
  id: '0b7d2a31-6f0e-8c55-9d3b-3d8f2f6f1c11',
  status: 'PENDING',
  timestamp: new Date('2026-03-01T12:00:05Z'),
  updatedAt: new Date('2026-03-01T12:00:06.789Z'),
  amount: '150',
  currency: 'USDC-BASE',
  network: 'BASE',
  fees: [],
  marks: [],
  exchangeRates: [],
  refunds: [],
  refundedAmount: '0',
  statusHistory: [],
}

const most: Payment = {
  ...least,
  status: 'CONFIRMED',
  type: 'CROSSCHAIN',
  amountInUsd: '150.01',
  invoiceAmount: '150',
  invoiceCurrency: 'USD',
  chainId: 'eip155:8453',
  txHash: `0x${'ab'.repeat(32)}`,
  blockNumber: 18_446_744_073_709_551_615n,
  eventIndex: 0,
  sourceNetwork: 'TRON',
  sourceTxHash: `0x${'cd'.repeat(32)}`,
  payer: address('TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t'),
  payee: address('0x3c44cdddb6a900fa2b585dd299e03d12fa4293bc'),
  initiator: address('0x70997970c51812dc3a010c7d01b50e0d17dc79c8'),
  tokenAddress: address('0x833589fcd6edb6e08f4c7c32d4f71b54bda02913'),
  requestId: `01${'ef'.repeat(32)}`,
  paymentReference: '0x1122334455667788',
  reference: 'INV-1',
  fees: [
    {
      type: 'PLATFORM',
      stage: 'SENDING',
      provider: 'request-network',
      amount: '0.75',
      currency: 'USDC-BASE',
      amountInUsd: '0.75',
      receiverAddress: '0x70997970c51812dc3a010c7d01b50e0d17dc79c8',
      network: 'BASE',
    },
  ],
  exchangeRates: [{ from: 'USD', to: 'USDC-BASE', rate: '1.0001', source: 'feed', at: '2026-03-01T12:00:00.000Z' }],
  gas: { used: '90211', price: '0.000000008', amount: '0.000721688', currency: 'ETH-BASE', amountInUsd: '2.16' },
  refunds: [
    {
      amount: '20',
      currency: 'USDT-TRON',
      network: 'TRON',
      txHash: `0x${'12'.repeat(32)}`,
      eventIndex: 0,
      timestamp: '2026-03-02T00:00:00.000Z',
    },
  ],
  refundedAmount: '20',
  statusHistory: [{ status: 'PENDING', at: '2026-03-01T12:00:06.789Z' }],
  confirmations: 12,
}

const json = (payment: Payment) => toJson(PaymentSchema, create(PaymentSchema, createPaymentToProto()(payment)))

test('unknown fields of a payment are absent', () => {
  expect(
    toJson(PaymentSchema, create(PaymentSchema, createPaymentToProto()(least)), { alwaysEmitImplicit: true }),
  ).toEqual({
    id: least.id,
    marks: [],
    metadata: {},
    status: 'PENDING',
    completed: false,
    timestamp: '2026-03-01T12:00:05Z',
    updatedAt: '2026-03-01T12:00:06.789Z',
    amount: '150',
    currency: 'USDC-BASE',
    network: 'BASE',
    destinationNetwork: 'BASE',
    fees: [],
    exchangeRates: [],
    refunds: [],
    refundedAmount: '0',
    statusHistory: [],
  })
})

test('known fields are written: addresses with their checksum, Tron addresses and hashes in their own form', () => {
  expect(json(most)).toEqual({
    id: most.id,
    status: 'CONFIRMED',
    completed: true,
    confirmations: 12,
    type: 'CROSSCHAIN',
    timestamp: '2026-03-01T12:00:05Z',
    updatedAt: '2026-03-01T12:00:06.789Z',
    amount: '150',
    currency: 'USDC-BASE',
    amountInUSD: '150.01',
    invoiceAmount: '150',
    invoiceCurrency: 'USD',
    network: 'BASE',
    chainId: 'eip155:8453',
    txHash: `0x${'ab'.repeat(32)}`,
    blockNumber: '18446744073709551615',
    eventIndex: 0,
    sourceNetwork: 'TRON',
    destinationNetwork: 'BASE',
    sourceTxHash: 'cd'.repeat(32),
    destinationTxHash: `0x${'ab'.repeat(32)}`,
    payer: 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t',
    payee: '0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC',
    initiator: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8',
    tokenAddress: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
    requestId: `01${'ef'.repeat(32)}`,
    paymentReference: '0x1122334455667788',
    reference: 'INV-1',
    fees: [
      {
        type: 'PLATFORM',
        stage: 'SENDING',
        provider: 'request-network',
        amount: '0.75',
        currency: 'USDC-BASE',
        amountInUSD: '0.75',
        receiverAddress: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8',
        network: 'BASE',
      },
    ],
    exchangeRates: [{ from: 'USD', to: 'USDC-BASE', rate: '1.0001', source: 'feed', at: '2026-03-01T12:00:00Z' }],
    gas: { used: '90211', price: '0.000000008', amount: '0.000721688', currency: 'ETH-BASE', amountInUSD: '2.16' },
    refunds: [
      {
        amount: '20',
        currency: 'USDT-TRON',
        network: 'TRON',
        txHash: '12'.repeat(32),
        eventIndex: 0,
        timestamp: '2026-03-02T00:00:00Z',
      },
    ],
    refundedAmount: '20',
    statusHistory: [{ status: 'PENDING', at: '2026-03-01T12:00:06.789Z' }],
  })
})

test('every status and type has its own enum value', () => {
  expect(paymentStatuses.map((status) => json({ ...least, status }))).toMatchObject(
    paymentStatuses.map((status) => ({ status })),
  )
  expect(paymentTypes.map((type) => json({ ...least, type }))).toMatchObject(paymentTypes.map((type) => ({ type })))
})

/** Handlers over a search that records its input and returns one page. */
function handlersOver(page: PaymentPage) {
  const asked: SearchInput[] = []
  const reads: Pick<PaymentReads, 'search' | 'getPayment'> = {
    async search(_, input) {
      asked.push(input)
      return page
    },
    async getPayment(_, id) {
      return { ...least, id }
    },
  }
  const handlers = createPaymentSearchHandlers(reads as PaymentReads, {} as never, createPaymentToProto())
  return { handlers, asked }
}

const empty: PaymentPage = { payments: [], pagination: { limit: 20 }, asOf: [], removed: [], watchCursor: 'w' }

test('a page has its cursors, its total, and how far each chain was read', async () => {
  const { handlers } = handlersOver({
    payments: [least],
    pagination: { limit: 20, nextCursor: 'n', prevCursor: 'p', total: { count: 10_000, relation: 'AT_LEAST' } },
    asOf: [{ network: 'BASE', block: 7n, time: new Date('2026-03-01T00:00:00Z') }, { network: 'BSC' }],
    removed: [{ id: least.id, changedAt: new Date('2026-03-01T00:00:00.001Z') }],
    completeTo: new Date('2026-03-01T00:00:00.002Z'),
    watchCursor: 'w',
  })
  const answer = await handlers.searchPayments(create(SearchPaymentsRequestSchema), context)
  expect(toJson(SearchPaymentsResponseSchema, create(SearchPaymentsResponseSchema, answer))).toMatchObject({
    payments: [{ id: least.id }],
    pagination: {
      limit: 20,
      hasMore: true,
      nextCursor: 'n',
      prevCursor: 'p',
      total: 10_000,
      totalRelation: 'AT_LEAST',
    },
    asOf: [{ network: 'BASE', block: '7', time: '2026-03-01T00:00:00Z' }, { network: 'BSC' }],
    removed: [{ id: least.id, changedAt: '2026-03-01T00:00:00.001Z' }],
    completeTo: '2026-03-01T00:00:00.002Z',
    watchCursor: 'w',
  })
})

test('the last page has no more, no cursor and no total', async () => {
  const { handlers } = handlersOver(empty)
  const answer = await handlers.searchPayments(create(SearchPaymentsRequestSchema), context)
  const options = { alwaysEmitImplicit: true }
  expect(toJson(SearchPaymentsResponseSchema, create(SearchPaymentsResponseSchema, answer), options)).toEqual({
    payments: [],
    pagination: { limit: 20, hasMore: false },
    asOf: [],
    removed: [],
    watchCursor: 'w',
  })
})

test('every field of a request reaches the search', async () => {
  const { handlers, asked } = handlersOver(empty)
  const texts = {
    fromDate: 'a',
    toDate: 'b',
    minAmount: 'c',
    maxAmount: 'd',
    cursor: 'e',
    q: 'q',
    timeZone: 'r',
    changedFrom: 'u',
    changedTo: 'v',
    referencePrefix: 'w',
  }
  const lists = {
    currency: ['f'],
    paymentCurrency: ['g'],
    invoiceCurrency: ['h'],
    payer: ['i'],
    payee: ['j'],
    walletAddress: ['k'],
    txHash: ['l'],
    requestId: ['m'],
    paymentReference: ['n'],
    reference: ['o'],
    network: ['p'],
    sourceNetwork: ['s'],
    destinationNetwork: ['t'],
    metadata: ['x=y'],
  }
  const request = create(SearchPaymentsRequestSchema, {
    ...texts,
    ...lists,
    status: [1, 5],
    type: [2, 4],
    sortBy: SearchPaymentsRequest_SortBy.STATUS,
    sortOrder: SearchPaymentsRequest_SortOrder.ASC,
    limit: 7,
    includeTotal: SearchPaymentsRequest_IncludeTotal.ESTIMATED,
  })
  const requestHeader = new Headers({ 'cache-control': 'max-age=0, No-Cache' })
  await handlers.searchPayments(request, { ...context, requestHeader })
  const { $typeName: _, ...fields } = request
  expect(Object.keys(asked[0] ?? {}).toSorted()).toEqual([...Object.keys(fields), 'noCache'].toSorted())
  expect(asked).toEqual([
    {
      ...texts,
      ...lists,
      status: ['PENDING', 'FAILED'],
      type: ['CONVERSION', 'RECURRING'],
      sortBy: 'status',
      sortOrder: 'asc',
      limit: 7,
      includeTotal: 'estimated',
      noCache: true,
    },
  ])
})

test.each([
  { status: [9] },
  { status: [0] },
  { type: [0] },
  { type: [5] },
  { sortBy: 5 },
  { sortOrder: 3 },
  { includeTotal: 4 },
])('a number that no enum has is refused: %j', async (fields) => {
  const { handlers, asked } = handlersOver(empty)
  const request = create(SearchPaymentsRequestSchema, fields)
  await expect(handlers.searchPayments(request, context)).rejects.toMatchObject({ reason: 'UNKNOWN_ENUM_VALUE' })
  expect(asked).toEqual([])
})

test('a payment has links to the explorers of its chains, for what is known', () => {
  const explorers = new Map(
    ['BASE', 'ARBITRUM'].map((name) => {
      const host = `https://${name.toLowerCase()}.example`
      return [name, { transaction: `${host}/tx/{hash}`, address: `${host}/address/{address}` }] as const
    }),
  )
  const toProto = createPaymentToProto((network = '') => explorers.get(network))
  const payee = '0x3c44cdddb6a900fa2b585dd299e03d12fa4293bc' as Address
  const txHash = `0x${'ab'.repeat(32)}` as const
  const crosschain = { ...least, sourceNetwork: 'ARBITRUM', sourceTxHash: txHash, payer: payee, payee }
  expect(toProto(crosschain).links).toEqual({
    transaction: undefined,
    sourceTransaction: `https://arbitrum.example/tx/${txHash}`,
    payer: 'https://arbitrum.example/address/0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC',
    payee: 'https://base.example/address/0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC',
  })
  expect(toProto({ ...least, txHash }).links).toMatchObject({ transaction: `https://base.example/tx/${txHash}` })
  expect(toProto({ ...least, network: 'POLYGON' })).not.toHaveProperty('links')
})
