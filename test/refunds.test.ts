import { encodeFunctionData, type Hex, keccak256, parseAbi, toBytes } from 'viem'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { DEMO_CHAINS } from '../src/demo/chain-specs.ts'
import { encodeApprove, encodeBatch } from '../src/demo/contracts.ts'
import { startTestChain, type TestChain, type TestPayment } from './support/chain.ts'
import { createTestDatabase, type TestDatabase } from './support/database.ts'
import {
  type Caller,
  freshAddress,
  type LifeService,
  newWallet,
  type RequestJson,
  startLifeService,
} from './support/payment-life.ts'

const COIN = 10n ** 18n
const HUNDRED = 100_000000n

const TRANSFER_FROM = parseAbi(['function transferFrom(address from, address to, uint256 value)'])
const SWAP_TO_PAY = parseAbi([
  'function swapTransferWithReference(address paymentProxy, address to, uint256 amount, uint256 amountInMax, address[] path, bytes paymentReference, uint256 feeAmount, address feeAddress, uint256 deadline)',
])

let database: TestDatabase
let chain: TestChain
let service: LifeService
let shop: Caller

beforeAll(async () => {
  ;[database, chain] = await Promise.all([
    createTestDatabase(),
    startTestChain({ chainId: 31_531, spec: { pools: DEMO_CHAINS[0]?.pools ?? [] } }),
  ])
  service = await startLifeService(database.knex, [chain.config({ name: 'BASE', finalityDepth: 1 })])
  shop = await service.caller('shop')
})
afterAll(async () => {
  await service?.stop()
  await Promise.all([chain?.stop(), database?.drop()])
})

let seeds = 0
const freshWallet = () => newWallet(chain, `refunds ${seeds++}`)

/** Sees all that is on the chain, final. */
async function look(): Promise<void> {
  await chain.mine({ blocks: 2 })
  await service.scan()
}

/** A request that was paid in full, and everybody whom refunds of it concern. */
interface Paid {
  readonly request: RequestJson
  readonly payer: Hex
  readonly payee: Hex
  readonly stranger: Hex
  readonly refundAddress: Hex
  /** Under the reference of the refund address. */
  readonly refundReference: Hex
  readonly isNative: boolean
}

async function paidRequest(currency: 'USDC' | 'ETH'): Promise<Paid> {
  const [payer, payee, stranger] = [await freshWallet(), await freshWallet(), await freshWallet()]
  const refundAddress = freshAddress(`refund ${seeds++}`)
  const isNative = currency === 'ETH'
  const amount = isNative ? '1' : '100'
  const request = await shop.createRequest({ payee, amount, paymentCurrency: currency, refundAddress })
  const text = (request.requestId + request.salt + refundAddress).toLowerCase()
  const refundReference: Hex = `0x${keccak256(toBytes(text)).slice(-16)}`
  const paid = { request, payer, payee, stranger, refundAddress, refundReference, isNative }
  await move(paid, { from: payer, to: payee })
  await look()
  expect(await stateOf(paid)).toEqual({ status: 'PAID', payments: [['CONFIRMED', '0']], unmatched: [] })
  return paid
}

/** Pays the whole amount through the proxy, under the request's own reference unless told. */
async function move(paid: Paid, terms: { from: Hex; to: Hex; paymentReference?: Hex }): Promise<void> {
  const { from, ...rest } = terms
  const { USDC } = chain.tokens
  const common = { paymentReference: paid.request.paymentReference, ...rest }
  const payment: TestPayment = paid.isNative
    ? { kind: 'NATIVE', amount: COIN, ...common }
    : { kind: 'ERC20', token: USDC.address, amount: HUNDRED, ...common }
  if (!paid.isNative) await chain.fund(USDC, from, HUNDRED)
  await chain.pay(from, payment)
}

async function stateOf({ request, refundReference }: Paid) {
  const payments = await shop.paymentsOf(request)
  const references = [request.paymentReference, refundReference]
  const unmatched = await Promise.all(
    references.map((paymentReference) => service.unmatchedOf(shop, { paymentReference })),
  )
  return {
    status: (await shop.request(request.paymentReference)).status,
    payments: payments.map(({ status, refundedAmount }) => [status, refundedAmount]),
    unmatched: unmatched.flat(),
  }
}

type Attack = (paid: Paid) => Promise<unknown>

const underRefundReference: Record<string, Attack> = {
  'by the payer himself': (paid) =>
    move(paid, { from: paid.payer, to: paid.refundAddress, paymentReference: paid.refundReference }),
  'by a stranger': (paid) =>
    move(paid, { from: paid.stranger, to: paid.refundAddress, paymentReference: paid.refundReference }),
  'by a stranger through a contract': ({ stranger, refundAddress, refundReference, isNative }) => {
    const common = { to: refundAddress, paymentReference: refundReference }
    const payment: TestPayment = isNative
      ? { kind: 'NATIVE', amount: COIN, ...common }
      : { kind: 'ERC20', token: chain.tokens.USDC.address, amount: HUNDRED, ...common }
    return chain.payInOneTransaction(stranger, [payment])
  },
}

/** Swaps for USDC that comes to the payer, in a transaction in which the payee "funds" the swap with nothing. */
async function swapToOneself({ payer, payee, request }: Paid): Promise<void> {
  const { DAI, USDC } = chain.tokens
  const { paymentBatch } = chain.contracts
  const swapToPay = chain.deployed.exchange?.swapToPay
  if (swapToPay === undefined) throw new Error('the chain has no exchange')
  await chain.fund(DAI, paymentBatch, 200n * COIN)
  const nothing = encodeFunctionData({ abi: TRANSFER_FROM, args: [payee, swapToPay, 0n] })
  const noFee = { amount: 0n, address: freshAddress('nobody') }
  const swap = encodeFunctionData({
    abi: SWAP_TO_PAY,
    args: [
      chain.contracts.erc20FeeProxy,
      payer,
      HUNDRED,
      200n * COIN,
      [DAI.address, USDC.address],
      request.paymentReference,
      noFee.amount,
      noFee.address,
      10n ** 12n,
    ],
  })
  const calls = [
    { to: USDC.address, data: nothing },
    encodeApprove(DAI.address, swapToPay, 200n * COIN),
    { to: swapToPay, data: swap },
  ]
  await chain.send(payer, encodeBatch(paymentBatch, calls), { gas: 2_000_000n })
}

describe.each(['USDC', 'ETH'] as const)('what somebody else than the payee sends, in %s', (currency) => {
  it.each(Object.keys(underRefundReference))('is no refund under the refund reference: %s', async (name) => {
    const paid = await paidRequest(currency)
    await underRefundReference[name]?.(paid)
    await look()
    expect(await stateOf(paid)).toEqual({
      status: 'PAID',
      payments: [['CONFIRMED', '0']],
      unmatched: ['NOT_FROM_PAYEE'],
    })
  })

  it('is no refund under the request’s own reference: by a stranger to the payer', async () => {
    const paid = await paidRequest(currency)
    await move(paid, { from: paid.stranger, to: paid.payer })
    await look()
    expect(await stateOf(paid)).toMatchObject({ status: 'PAID', unmatched: ['WRONG_PAYEE'] })
  })
})

it('a swap to oneself that the payee funds with a Transfer of nothing is no refund', async () => {
  const paid = await paidRequest('USDC')
  await swapToOneself(paid)
  await look()
  expect(await stateOf(paid)).toEqual({
    status: 'PAID',
    payments: [['CONFIRMED', '0']],
    unmatched: ['WRONG_PAYEE'],
  })
})

describe.each(['USDC', 'ETH'] as const)('what the payee sends back, in %s', (currency) => {
  const whole = currency === 'ETH' ? '1' : '100'

  it.each([
    ['to the refund address under its reference', ({ refundAddress }: Paid) => refundAddress],
    ['to the payer under the request’s own', ({ payer }: Paid) => payer],
  ])('is a refund %s', async (_, addressOf) => {
    const paid = await paidRequest(currency)
    const to = addressOf(paid)
    const isOwn = to === paid.payer
    await move(paid, { from: paid.payee, to, ...(isOwn ? {} : { paymentReference: paid.refundReference }) })
    await look()
    expect(await stateOf(paid)).toEqual({ status: 'REFUNDED', payments: [['REFUNDED', whole]], unmatched: [] })
  })
})
