import { getAddress, type Hex, keccak256, toBytes } from 'viem'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { currencyHash } from '../../src/contracts/currency-hash.ts'
import { startTestChain, type TestChain, type TestPayment } from '../support/chains/chain.ts'
import {
  type Caller,
  freshAddress,
  type LifeService,
  newWallet,
  type PaymentJson,
  type RequestJson,
  startLifeService,
  type Terms,
} from '../support/chains/payment-life.ts'
import { createTestDatabase, type TestDatabase } from '../support/data/database.ts'

/** Deep enough that the blocks of a test's preparation make no payment final. */
const FINALITY = 20
const USD = 10n ** 8n
const COIN = 10n ** 18n

let database: TestDatabase
let chain: TestChain
let service: LifeService
let shop: Caller

beforeAll(async () => {
  ;[database, chain] = await Promise.all([createTestDatabase(), startTestChain({ chainId: 31_511 })])
  service = await startLifeService(database.knex, [chain.config({ name: 'BASE', finalityDepth: FINALITY })])
  shop = await service.caller('shop')
})
afterAll(async () => {
  await service?.stop()
  await Promise.all([chain?.stop(), database?.drop()])
})

let seeds = 0
const freshSeed = () => `counting ${seeds++}`

async function createRequest(terms: Partial<Terms> = {}): Promise<RequestJson> {
  return shop.createRequest({ payee: freshAddress(freshSeed()), amount: '100', ...terms })
}

/** Reads the chain; with `final`, after enough blocks that everything is final. */
async function scan({ final = false } = {}): Promise<void> {
  if (final) await chain.mine({ blocks: FINALITY })
  await service.scan()
}

type Moved = Partial<TestPayment> & { from: Hex; amount: bigint }

/** Pays USDC from `from` under the request's reference, unless given otherwise. */
async function pay(request: RequestJson, { from, ...terms }: Moved) {
  const { USDC } = chain.tokens
  const payment = { kind: 'ERC20', token: USDC.address, to: request.payee, ...terms } as TestPayment
  const full = { ...payment, paymentReference: terms.paymentReference ?? request.paymentReference }
  if ('token' in full) await chain.fund({ address: full.token }, from, 10n ** 24n)
  return chain.pay(from, full)
}

const balance = async (request: RequestJson) => {
  const found = await shop.request(request.paymentReference)
  const { status, paidAmount, pendingAmount, outstandingAmount, overpaidAmount } = found
  return { status, paid: paidAmount, pending: pendingAmount, left: outstandingAmount, over: overpaidAmount }
}
const statesOf = async (request: RequestJson) =>
  (await shop.paymentsOf(request)).map(({ amount, status, refundedAmount }) => [amount, status, refundedAmount])

/** The reference of a request's refund address. */
function refundReference({ requestId, salt }: RequestJson, refundAddress: string): Hex {
  return `0x${keccak256(toBytes((requestId + salt + refundAddress).toLowerCase())).slice(-16)}`
}

describe('an invoice in US dollars', () => {
  it('is counted in dollars by conversions into a token, each at its own rate', async () => {
    const { DAI } = chain.tokens
    const from = await newWallet(chain, freshSeed())
    const request = await createRequest({ amount: '10', invoiceCurrency: 'USD', paymentCurrency: 'DAI' })
    const convert = (amount: bigint) =>
      pay(request, { from, kind: 'ERC20_CONVERSION', token: DAI.address, amount, feeAmount: USD, feeAddress: from })
    await chain.setFeed(DAI.feed, { answer: 2n * USD })
    await convert(4n * USD)
    await chain.setFeed(DAI.feed, { answer: USD })
    await scan()
    expect(await balance(request)).toEqual({ status: 'PARTIALLY_PAID', paid: '0', pending: '4', left: '6', over: '0' })
    const quoted = await shop.routes(request.paymentReference, { wallet: from })
    expect(quoted).toMatchObject({ amount: '6', currency: 'USD' })
    await convert(6n * USD)
    await scan()
    expect(await balance(request)).toEqual({ status: 'PENDING', paid: '0', pending: '10', left: '0', over: '0' })
    await scan({ final: true })
    const payments = await shop.paymentsOf(request)
    const seen = payments.map(({ amount, invoiceAmount, amountInUSD, type, status }) => [
      amount,
      invoiceAmount,
      amountInUSD,
      type,
      status,
    ])
    expect(seen).toEqual([
      ['2', '4', '4', 'CONVERSION', 'CONFIRMED'],
      ['6', '6', '6', 'CONVERSION', 'CONFIRMED'],
    ])
    const found = await shop.search({ invoiceCurrency: 'usd', minAmount: '4', maxAmount: '4', payee: request.payee })
    expect(found.payments).toEqual([payments[0]])
    expect((await shop.search({ currency: 'DAI', minAmount: '6', payee: request.payee })).payments).toEqual([
      payments[1],
    ])
    expect(await balance(request)).toEqual({ status: 'PAID', paid: '10', pending: '0', left: '0', over: '0' })
  })

  it('is counted in dollars by a conversion into the chain’s own coin', async () => {
    const from = await newWallet(chain, freshSeed())
    const request = await createRequest({ amount: '300.5', invoiceCurrency: 'USD', paymentCurrency: 'ETH' })
    const before = await chain.nativeBalance(request.payee)
    await pay(request, { from, kind: 'NATIVE_CONVERSION', amount: (3_005n * USD) / 10n, to: request.payee })
    await scan({ final: true })
    const received = (await chain.nativeBalance(request.payee)) - before
    const [payment] = await shop.paymentsOf(request)
    expect(payment).toMatchObject({
      invoiceAmount: '300.5',
      invoiceCurrency: 'USD',
      status: 'CONFIRMED',
      type: 'CONVERSION',
    })
    expect(payment?.amount).toBe(`0.${received.toString().padStart(18, '0')}`.replace(/0+$/, ''))
    expect(await balance(request)).toEqual({ status: 'PAID', paid: '300.5', pending: '0', left: '0', over: '0' })
  })

  it.each(['USDC', 'ETH'] as const)('is never covered by a payment in %s without a conversion', async (currency) => {
    const from = await newWallet(chain, freshSeed())
    const request = await createRequest({ invoiceCurrency: 'USD', paymentCurrency: currency })
    if (currency === 'ETH') await pay(request, { from, kind: 'NATIVE', amount: 50n * COIN, to: request.payee })
    else await pay(request, { from, amount: 1_000_000000n })
    await scan({ final: true })
    expect(await service.unmatchedOf(shop, request)).toEqual(['NOT_A_CONVERSION'])
    expect(await balance(request)).toEqual({ status: 'OPEN', paid: '0', pending: '0', left: '100', over: '0' })
    expect(await shop.paymentsOf(request)).toEqual([])
  })

  it('is not covered by a conversion from another currency', async () => {
    const from = await newWallet(chain, freshSeed())
    const request = await createRequest({ invoiceCurrency: 'EUR' })
    await pay(request, { from, kind: 'ERC20_CONVERSION', token: chain.tokens.USDC.address, amount: 100n * USD })
    await scan({ final: true })
    expect(currencyHash('iso4217', 'EUR')).not.toBe(currencyHash('iso4217', 'USD'))
    expect(await service.unmatchedOf(shop, request)).toEqual(['WRONG_TOKEN'])
    expect(await balance(request)).toMatchObject({ status: 'OPEN', left: '100' })
  })

  it('is counted without a plain payment between two conversions of one transaction', async () => {
    const { USDC } = chain.tokens
    const request = await createRequest({ invoiceCurrency: 'USD' })
    const common = { token: USDC.address, to: request.payee, paymentReference: request.paymentReference } as const
    await chain.payInOneTransaction(chain.wallets[0], [
      { ...common, kind: 'ERC20_CONVERSION', amount: 40n * USD },
      { ...common, kind: 'ERC20', amount: 500_000000n },
      { ...common, kind: 'ERC20_CONVERSION', amount: 25n * USD },
    ])
    await scan()
    const payments = await shop.paymentsOf(request)
    expect(payments.map(({ amount, invoiceAmount }) => [amount, invoiceAmount])).toEqual([
      ['40', '40'],
      ['25', '25'],
    ])
    expect(await service.unmatchedOf(shop, request)).toEqual(['NOT_A_CONVERSION'])
    expect(await balance(request)).toMatchObject({ pending: '65', left: '35' })
  })
})

describe('payments in parts', () => {
  it('are PARTIAL when they are final, and all become CONFIRMED when the last one is', async () => {
    const from = await newWallet(chain, freshSeed())
    const request = await createRequest()
    await pay(request, { from, amount: 60_000000n })
    await scan()
    expect(await statesOf(request)).toEqual([['60', 'PENDING', '0']])
    await scan({ final: true })
    expect(await statesOf(request)).toEqual([['60', 'PARTIAL', '0']])
    expect(await balance(request)).toEqual({
      status: 'PARTIALLY_PAID',
      paid: '60',
      pending: '0',
      left: '40',
      over: '0',
    })
    const [partial] = (await shop.paymentsOf(request)) as [PaymentJson]
    expect(partial.completed).toBe(false)
    await pay(request, { from, amount: 39_999999n })
    await scan({ final: true })
    expect((await shop.paymentsOf(request))[0]).toEqual(partial)
    expect(await balance(request)).toMatchObject({ status: 'PARTIALLY_PAID', left: '0.000001' })
    await pay(request, { from, amount: 1n })
    await scan()
    expect(await statesOf(request)).toEqual([
      ['60', 'PARTIAL', '0'],
      ['39.999999', 'PARTIAL', '0'],
      ['0.000001', 'PENDING', '0'],
    ])
    expect(await balance(request)).toMatchObject({ status: 'PENDING', left: '0' })
    await scan({ final: true })
    const all = await shop.paymentsOf(request)
    expect(all.map(({ status, completed }) => `${status} ${completed}`)).toEqual(Array(3).fill('CONFIRMED true'))
    expect(new Set(all.map(({ updatedAt }) => updatedAt)).size).toBe(1)
    expect(Date.parse(all[0]?.updatedAt ?? '')).toBeGreaterThan(Date.parse(partial.updatedAt))
    expect(all[0]?.statusHistory.map(({ status }) => status)).toEqual(['PENDING', 'PARTIAL', 'CONFIRMED'])
    expect(all[0]?.confirmations).toBe(partial.confirmations)
    expect(await balance(request)).toEqual({ status: 'PAID', paid: '100', pending: '0', left: '0', over: '0' })
  })

  it('show what was paid above the amount', async () => {
    const from = await newWallet(chain, freshSeed())
    const request = await createRequest()
    await pay(request, { from, amount: 90_000000n })
    await pay(request, { from, amount: 35_000000n })
    await scan()
    expect(await balance(request)).toEqual({ status: 'PENDING', paid: '0', pending: '125', left: '0', over: '25' })
    await scan({ final: true })
    expect(await balance(request)).toEqual({ status: 'PAID', paid: '125', pending: '0', left: '0', over: '25' })
    expect((await statesOf(request)).map(([, status]) => status)).toEqual(['CONFIRMED', 'CONFIRMED'])
  })
})

describe('refunds', () => {
  it('under the reference of the refund address return the newest payment, then the one before', async () => {
    const [from, merchant] = [await newWallet(chain, freshSeed()), await newWallet(chain, freshSeed())]
    const refundAddress = freshAddress(freshSeed())
    const request = await createRequest({ refundAddress, payee: merchant })
    await pay(request, { from, amount: 60_000000n })
    await pay(request, { from, amount: 50_000000n })
    await scan({ final: true })
    const back = async (amount: bigint, final = true) => {
      const paymentReference = refundReference(request, refundAddress)
      const sent = await pay(request, { from: merchant, to: refundAddress, amount, paymentReference })
      await scan({ final })
      return sent.transactionHash
    }
    const tooMuch = await back(10_000000n)
    expect(await balance(request)).toEqual({ status: 'PAID', paid: '110', pending: '0', left: '0', over: '0' })
    expect((await shop.paymentsOf(request)).map(({ refunds }) => refunds)).toMatchObject([
      [],
      [{ amount: '10', txHash: tooMuch, recipient: getAddress(refundAddress) }],
    ])

    const hash = await back(50_000000n, false)
    // The newest payment brought 50, of which 10 were returned before.
    expect(await statesOf(request)).toEqual([
      ['60', 'CONFIRMED', '10'],
      ['50', 'CONFIRMED', '50'],
    ])
    await scan({ final: true })
    expect(await statesOf(request)).toEqual([
      ['60', 'CONFIRMED', '10'],
      ['50', 'REFUNDED', '50'],
    ])
    const [, newest] = (await shop.paymentsOf(request)) as [PaymentJson, PaymentJson]
    expect(newest.refunds).toMatchObject([{ txHash: tooMuch }, { amount: '40', currency: 'USDC-BASE', txHash: hash }])
    expect(newest.completed).toBe(false)
    expect(newest.statusHistory.map(({ status }) => status)).toContain('REFUNDED')
    expect(await balance(request)).toMatchObject({ status: 'PAID', left: '0' })

    await back(50_000000n)
    expect((await statesOf(request)).map(([, status]) => status)).toEqual(['REFUNDED', 'REFUNDED'])
    expect(await balance(request)).toMatchObject({ status: 'REFUNDED', left: '0', over: '0' })
    const answer = await shop.routes(request.paymentReference, { wallet: from })
    expect([answer.routes, answer.warnings[0]?.reason]).toEqual([[], 'REQUEST_ALREADY_PAID'])
    expect((await shop.search({ status: 'REFUNDED', payee: request.payee })).payments).toHaveLength(2)
  })

  it('under the reference of the refund address count only to that address and in the right token', async () => {
    const from = await newWallet(chain, freshSeed())
    const refundAddress = freshAddress(freshSeed())
    const request = await createRequest({ refundAddress })
    const paymentReference = refundReference(request, refundAddress)
    await pay(request, { from, amount: 100_000000n })
    await pay(request, { from, to: from, amount: 100_000000n, paymentReference })
    await pay(request, { from, to: request.payee, amount: 100_000000n, paymentReference })
    await pay(request, {
      from,
      to: refundAddress,
      token: chain.tokens.USDT.address,
      amount: 100_000000n,
      paymentReference,
    })
    await pay(request, { from, kind: 'NATIVE', to: refundAddress, amount: COIN, paymentReference })
    await scan({ final: true })
    expect(await statesOf(request)).toEqual([['100', 'CONFIRMED', '0']])
    expect(await balance(request)).toEqual({ status: 'PAID', paid: '100', pending: '0', left: '0', over: '0' })
    const reasons = await service.unmatchedOf(shop, { paymentReference })
    expect(reasons).toEqual(['WRONG_PAYEE', 'WRONG_PAYEE', 'WRONG_TOKEN', 'WRONG_TOKEN'])
  })

  it.each(['USDC', 'ETH'] as const)(
    'under the request’s own reference go in %s from the payee to a payer',
    async (currency) => {
      const [from, payee, friend] = [
        await newWallet(chain, freshSeed()),
        await newWallet(chain, freshSeed()),
        await newWallet(chain, freshSeed()),
      ]
      const unit = currency === 'ETH' ? COIN / 100n : 1_000000n
      const move = (sender: Hex, to: Hex, amount: bigint) =>
        currency === 'ETH'
          ? pay(request, { from: sender, kind: 'NATIVE', to, amount: amount * unit })
          : pay(request, { from: sender, to, amount: amount * unit })
      const whole = currency === 'ETH' ? '1' : '100'
      const request = await createRequest({ payee, paymentCurrency: currency, amount: whole })
      await move(from, payee, 100n)
      await scan({ final: true })
      await move(payee, friend, 100n)
      await move(friend, from, 100n)
      await scan({ final: true })
      expect(await service.unmatchedOf(shop, request)).toEqual(['WRONG_PAYEE', 'WRONG_PAYEE'])
      expect(await statesOf(request)).toEqual([[whole, 'CONFIRMED', '0']])
      await move(payee, from, 100n)
      await scan()
      expect(await statesOf(request)).toEqual([[whole, 'CONFIRMED', whole]])
      await scan({ final: true })
      expect(await statesOf(request)).toEqual([[whole, 'REFUNDED', whole]])
      expect(await balance(request)).toEqual({ status: 'REFUNDED', paid: whole, pending: '0', left: '0', over: '0' })
      // A refund does not reopen a request. What is paid later is held again, and is less than the request asks for.
      await move(from, payee, 30n)
      await scan({ final: true })
      expect((await statesOf(request)).map(([, status]) => status)).toEqual(['REFUNDED', 'CONFIRMED'])
      expect(await balance(request)).toMatchObject({ status: 'PAID', left: '0', over: '0' })
    },
  )

  it('of an invoice in dollars reduce its surplus by what they returned', async () => {
    const [from, merchant] = [await newWallet(chain, freshSeed()), await newWallet(chain, freshSeed())]
    const refundAddress = freshAddress(freshSeed())
    const { DAI } = chain.tokens
    const request = await createRequest({
      payee: merchant,
      invoiceCurrency: 'USD',
      paymentCurrency: 'DAI',
      refundAddress,
    })
    const convert = (amount: bigint) =>
      pay(request, { from, kind: 'ERC20_CONVERSION', token: DAI.address, amount: amount * USD })
    await convert(100n)
    await chain.setFeed(DAI.feed, { answer: 2n * USD })
    await convert(20n)
    await chain.setFeed(DAI.feed, { answer: USD })
    await scan({ final: true })
    expect(await balance(request)).toMatchObject({ status: 'PAID', over: '20' })
    const paymentReference = refundReference(request, refundAddress)
    const token = DAI.address
    await pay(request, { from: merchant, to: refundAddress, token, amount: 10n * COIN, paymentReference })
    await scan({ final: true })
    expect(await statesOf(request)).toEqual([
      ['100', 'CONFIRMED', '0'],
      ['10', 'REFUNDED', '10'],
    ])
    expect(await balance(request)).toEqual({ status: 'PAID', paid: '120', pending: '0', left: '0', over: '0' })
  })
})
