import { create } from '@bufbuild/protobuf'
import { createClient } from '@connectrpc/connect'
import { createGrpcTransport } from '@connectrpc/connect-node'
import type { Address, Hex } from 'viem'
import type { PaymentRequest } from '../../../gen/payments/v1/payment_request_pb.js'
import { CreatePaymentRequestRequestSchema, RequestsService } from '../../../gen/payments/v1/requests_service_pb.js'
import { createApiKeyRepository } from '../../../src/auth/sql/api-key-repository.ts'
import type { UnmatchedEvent } from '../../../src/detection/match/detected.ts'
import type { UnmatchedReason } from '../../../src/detection/match/match-event.ts'
import { storeUnmatched } from '../../../src/detection/sql/unmatched-repository.ts'
import type { Account } from '../../../src/domain/account.ts'
import { paymentReferenceOf } from '../../../src/domain/identifiers.ts'
import type { Payment } from '../../../src/domain/payment.ts'
import { dropLeases } from '../../../src/store/leases-repository.ts'
import { canonical } from '../detection.ts'
import { NOW, type TestService } from '../service.ts'
import { insertPayments } from './search-payments.ts'

const USD = 10n ** 8n
const COIN = 10n ** 18n

const TRON_PAYER = 'TJRabPrwbZy45sbavfcjinPJC18kjpRTv8'
const TRON_PAYEE = 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t'

const terms = {
  open: { amount: '150', reference: 'INV-1' },
  paid: { amount: '20', reference: 'INV-2' },
  partial: { amount: '100' },
  overpaid: { amount: '10' },
  refunded: { amount: '8' },
  pending: { amount: '30' },
  fiat: { amount: '25', invoiceCurrency: 'USD' },
  native: { amount: '0.5', invoiceCurrency: 'ETH', paymentCurrency: 'ETH' },
} as const

type RequestName = keyof typeof terms

/** The values that cases refer to, such as `${open.paymentReference}`. */
export type Values = Readonly<Record<string, string>>

/**
 * Fills a service: requests of `shop` in every status, created by RPC, paid on chain and detected; one request of `other`; and payments
 * that this chain cannot have, stored as imported ones.
 */
export async function seedPayments(running: TestService): Promise<Values> {
  const { chain, database } = running
  const [payer, payee, platform, refundee, funded, empty] = chain.wallets
  const { USDC } = chain.tokens
  const requests = await createRequests(running, { payee, refundee })
  const closed = await storeClosed(running, payee)
  const first = await payRequests(running, requests)

  // It would expire while tests run, and chains change their state.
  await dropLeases(database.knex)

  const accounts = createApiKeyRepository(database.knex)
  const shop = await accounts.ensureAccount('shop')
  const other = await accounts.ensureAccount('other')
  await insertPayments(database.knex, [
    ...imported.map((payment) => ({ accountId: shop.id, final: true, payment })),
    // Two, so that one is on the second page.
    { accountId: other.id, final: true, payment: { ...bare, id: FOREIGN_ID } },
    { accountId: other.id, final: true, payment: { ...bare, id: SECOND_FOREIGN_ID, amountInUsd: '1' } },
  ])
  const topics = await seedUnmatched(running, { shop, other }, payee)
  return {
    ...topics,
    payer,
    payee,
    platform,
    refundee,
    'wallet.funded': funded,
    'wallet.empty': empty,
    'wallet.funded.lower': funded.toLowerCase(),
    'wallet.payer.lower': payer.toLowerCase(),
    usdc: USDC.address,
    'paid.txHash': first.transactionHash,
    'paid.paymentId': await idOfPayment(running, requests.paid),
    'native.paymentId': await idOfPayment(running, requests.native),
    'fiat.paymentId': await idOfPayment(running, requests.fiat),
    'pending.paymentId': await idOfPayment(running, requests.pending),
    'refunded.paymentId': await idOfPayment(running, requests.refunded),
    'foreign.paymentId': FOREIGN_ID,
    'tron.paymentId': TRON_ID,
    'crosschain.paymentId': CROSSCHAIN_ID,
    'bare.paymentId': bare.id,
    'foreign.paymentReference': requests.foreign.paymentReference,
    ...namesOf(requests),
    ...namesOf(closed),
    'open.paymentReference.bare': requests.open.paymentReference.slice(2).toUpperCase(),
  }
}

/** Pays the requests on chain and waits until the payments are detected. Returns the first payment's receipt. */
async function payRequests(
  { chain, service }: TestService,
  { paid, partial, overpaid, refunded, pending, fiat, native }: Awaited<ReturnType<typeof createRequests>>,
) {
  const [payer, payee, platform, refundee, funded] = chain.wallets
  const { USDC } = chain.tokens
  const pay = async (amount: bigint, request: PaymentRequest, fee: { feeAmount?: bigint; feeAddress?: Address } = {}) =>
    chain.pay(payer, {
      kind: 'ERC20',
      token: USDC.address,
      to: payee,
      amount,
      paymentReference: request.paymentReference as Hex,
      ...fee,
    })

  await chain.fund(USDC, payer, 1_000_000000n)
  await chain.fund(USDC, payee, 1_000_000000n)
  await chain.fund(USDC, funded, 1_000_000000n)
  const first = await pay(20_000000n, paid)
  await pay(40_000000n, partial)
  await pay(15_000000n, overpaid, { feeAmount: 50000n, feeAddress: platform })
  await pay(8_000000n, refunded)
  const refundReference = paymentReferenceOf(refunded.requestId ?? '', refunded.salt ?? '', canonical(refundee))
  await chain.pay(payee, {
    kind: 'ERC20',
    token: USDC.address,
    to: refundee,
    amount: 8_000000n,
    paymentReference: refundReference,
  })
  await chain.pay(payer, {
    kind: 'ERC20_CONVERSION',
    token: USDC.address,
    to: payee,
    amount: 25n * USD,
    paymentReference: fiat.paymentReference as Hex,
  })
  await chain.pay(payer, {
    kind: 'NATIVE',
    to: payee,
    amount: COIN / 2n,
    paymentReference: native.paymentReference as Hex,
  })
  await chain.mine({ blocks: 4 })
  await pay(30_000000n, pending)
  await service.detection.scanOnce()
  return first
}

/** Unmatched events as detection stores them, the newest of no account. */
async function seedUnmatched(
  { chain, database }: TestService,
  { shop, other }: { readonly shop: Account; readonly other: Account },
  payee: Address,
): Promise<Values> {
  const { contracts, tokens, wallets } = chain
  const [payer] = wallets
  const event = {
    emitter: canonical(contracts.erc20FeeProxy),
    token: canonical(tokens.USDC.address),
    to: canonical(payee),
    amount: '1500000',
    feeAmount: '0',
    feeAddress: `0x${'00'.repeat(20)}`,
    payer: canonical(payer),
  }
  const seen = (place: number, accountId: number, reason: UnmatchedReason, fields: object = {}): UnmatchedEvent => ({
    accountId,
    reason,
    topic: `0x${`c${place}`.repeat(32)}`,
    txHash: `0x${`d${place}`.repeat(32)}`,
    eventIndex: place,
    blockNumber: place,
    timestamp: new Date(NOW.getTime() - 60_000 * (9 - place)),
    event: { ...event, ...fields },
  })
  await storeUnmatched(database.knex, `eip155:${chain.chainId}`, [
    seen(1, shop.id, 'RATE_OFF', { rateProblem: 'NO_PATH' }),
    seen(2, shop.id, 'NOT_FROM_PAYEE'),
    seen(3, other.id, 'WRONG_PAYEE'),
    seen(4, 0, 'UNKNOWN_TOPIC', { token: `0x${'ab'.repeat(20)}`, payer: undefined }),
  ])
  return { 'proxy.address': contracts.erc20FeeProxy, chainId: `eip155:${chain.chainId}` }
}

async function createRequests({ url, keys }: TestService, { payee, refundee }: { payee: Address; refundee: Address }) {
  const client = createClient(RequestsService, createGrpcTransport({ baseUrl: url }))
  const made: [string, PaymentRequest][] = []
  const store = async (name: string, { number, key }: { number: number; key: string }) => {
    const given = {
      invoiceCurrency: 'USDC',
      paymentCurrency: 'USDC',
      ...(terms[name as RequestName] ?? { amount: '1' }),
    }
    const request = create(CreatePaymentRequestRequestSchema, {
      ...given,
      network: 'ETHEREUM',
      payee,
      requestId: `01${number.toString(16).padStart(64, '0')}`,
      salt: number.toString(16).padStart(16, '0'),
      ...(name === 'refunded' && { refundAddress: refundee }),
    })
    made.push([name, await client.createPaymentRequest(request, { headers: { 'x-api-key': key } })])
  }
  for (const [at, name] of Object.keys(terms).entries()) await store(name, { number: at + 1, key: keys.shop })
  await store('foreign', { number: 0xf0, key: keys.other })
  return Object.fromEntries(made) as Record<RequestName | 'foreign', PaymentRequest>
}

/** Requests of `shop` without routes, made an hour ago: one has expired, the other was cancelled now. */
async function storeClosed({ service, database }: TestService, payee: Address) {
  const shop = await createApiKeyRepository(database.knex).ensureAccount('shop')
  const createdAt = new Date(NOW.getTime() - 3_600_000)
  const common = { payee, invoiceCurrency: 'USDC', paymentCurrency: 'USDC-ETHEREUM' }
  const [expired, cancelled] = [`01${'e1'.repeat(32)}`, `01${'e2'.repeat(32)}`]
  const expiresAt = new Date(NOW.getTime() - 1_800_000).toISOString()
  const salt = 'e0'.repeat(8)
  await service.requests.storeAll(shop, [
    { terms: { ...common, amount: '5', requestId: expired, salt, expiresAt }, createdAt },
    { terms: { ...common, amount: '6', requestId: cancelled, salt }, createdAt },
  ])
  const { requests } = await service.requests.list(shop, { requestId: [expired, cancelled] })
  const stored = new Map(requests.map(({ request }) => [request.requestId, request]))
  await service.requests.cancel(shop, stored.get(cancelled)?.paymentReference ?? '')
  return { expired: stored.get(expired), cancelled: stored.get(cancelled) }
}

type Named = Pick<PaymentRequest, 'requestId' | 'salt' | 'paymentReference'>

function namesOf(requests: Readonly<Record<string, Named | undefined>>): Values {
  const entries = Object.entries(requests).flatMap(([name, request]) =>
    (['requestId', 'salt', 'paymentReference'] as const).map((each) => [`${name}.${each}`, request?.[each]]),
  )
  return Object.fromEntries(entries)
}

async function idOfPayment({ database }: TestService, { requestId }: PaymentRequest): Promise<string> {
  const ids = await database
    .knex('payments')
    .where({ request_id: Buffer.from(requestId ?? '', 'hex') })
    .pluck<string[]>('id')
  if (ids[0] === undefined) throw new Error(`nothing was found for ${requestId}`)
  return ids[0]
}

const TRON_ID = '7e000000-0000-4000-8000-000000000001'
const CROSSCHAIN_ID = '7e000000-0000-4000-8000-000000000002'
const FOREIGN_ID = '7e000000-0000-4000-8000-0000000000ff'
const SECOND_FOREIGN_ID = '7e000000-0000-4000-8000-0000000000fe'

/** The fewest fields that a payment can have. */
const bare: Payment = {
  id: '7e000000-0000-4000-8000-000000000003',
  status: 'FAILED',
  timestamp: new Date(NOW.getTime() - 3_000_000),
  updatedAt: new Date(NOW.getTime() - 2_000_000),
  amount: '0',
  currency: 'POINTS-OLDNET',
  network: 'OLDNET',
  fees: [],
  marks: [],
  exchangeRates: [],
  refunds: [],
  refundedAmount: '0',
  statusHistory: [],
}

const imported: readonly Payment[] = [
  bare,
  {
    ...bare,
    id: TRON_ID,
    status: 'CONFIRMED',
    type: 'DIRECT',
    amount: '12.5',
    currency: 'USDT-TRON',
    network: 'TRON',
    chainId: 'tron:0x2b6653dc',
    txHash: `0x${'1a'.repeat(32)}`,
    eventIndex: 0,
    blockNumber: 0n,
    confirmations: 0,
    payer: canonical(TRON_PAYER),
    payee: canonical(TRON_PAYEE),
    reference: 'a,b "ü" ✓',
    fees: [
      {
        type: 'PLATFORM',
        stage: 'SENDING',
        amount: '0',
        currency: 'USDT-TRON',
        receiverAddress: canonical(TRON_PAYEE),
      },
    ],
    gas: { amount: '0', currency: 'TRX-TRON' },
    statusHistory: [{ status: 'CONFIRMED', at: NOW.toISOString() }],
  },
  {
    ...bare,
    id: CROSSCHAIN_ID,
    status: 'PENDING',
    type: 'CROSSCHAIN',
    amount: '99999999999999999999999.000000000000000001',
    currency: 'USDC-BASE',
    network: 'BASE',
    chainId: 'eip155:8453',
    txHash: `0x${'2b'.repeat(32)}`,
    eventIndex: 3,
    blockNumber: 18_446_744_073_709_551n,
    invoiceCurrency: 'EUR',
    exchangeRates: [{ from: 'EUR', to: 'USDC-BASE', rate: '1.08', source: 'import' }],
  },
]
