import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { formatAmount } from '../../src/domain/decimal.ts'
import { startTestChain, type TestChain } from '../support/chains/chain.ts'
import {
  type Caller,
  feeLine,
  freshAddress,
  gasPriceNow,
  type LifeService,
  nearMiss,
  newWallet,
  type PaymentJson,
  payAsQuoted,
  type Query,
  type RequestJson,
  startLifeService,
  units,
} from '../support/chains/payment-life.ts'
import { createTestDatabase, type TestDatabase } from '../support/data/database.ts'

const FINALITY = 3

let database: TestDatabase
let chain: TestChain
let other: TestChain
let service: LifeService
let shop: Caller

beforeAll(async () => {
  ;[database, chain, other] = await Promise.all([
    createTestDatabase(),
    startTestChain({ chainId: 31_501 }),
    startTestChain({ chainId: 31_502, addressSeed: 1 }),
  ])
  const configs = [
    chain.config({ name: 'BASE', finalityDepth: FINALITY }),
    other.config({ name: 'POLYGON', finalityDepth: FINALITY }),
  ]
  service = await startLifeService(database.knex, configs)
  shop = await service.caller('shop')
})
afterAll(async () => {
  await service?.stop()
  await Promise.all([chain?.stop(), other?.stop(), database?.drop()])
})

async function onlyPayment(request: RequestJson): Promise<PaymentJson> {
  const payments = await shop.paymentsOf(request)
  expect(payments).toHaveLength(1)
  return payments[0] as PaymentJson
}

const idsFound = async (query: Query) => (await shop.search(query)).payments.map(({ id }) => id)
const reasonsOf = (warnings: { reason: string }[]) => warnings.map(({ reason }) => reason)
const secondAfter = (time: string) => new Date(Date.parse(time) + 1_000).toISOString()

interface Life {
  readonly currency: 'USDC' | 'USDT' | 'DAI' | 'ETH'
  readonly amount: string
  readonly percentage?: string
}
const lives: Life[] = [
  { currency: 'USDC', amount: '150.123456' },
  { currency: 'USDC', amount: '150.123456', percentage: '0.5' },
  { currency: 'USDT', amount: '12', percentage: '100' },
  { currency: 'DAI', amount: '0.000000000000000007', percentage: '33.3' },
  { currency: 'ETH', amount: '1.5' },
  { currency: 'ETH', amount: '1.000000000000000001', percentage: '2.5' },
]

describe.each(lives)('a request, from the quote to finality: $currency, fee $percentage', (life) => {
  const { currency, amount, percentage } = life
  const seed = JSON.stringify(life)
  const payee = freshAddress(`payee ${seed}`)
  const feeAddress = freshAddress(`platform ${seed}`)
  const reference = `INV-1, ${seed}`
  const fee = percentage === undefined ? {} : { feePercentage: percentage, feeAddress }
  let request: RequestJson
  let pending: PaymentJson
  let wallet: `0x${string}`

  it('costs the payer what was quoted, to the unit, and gas within the quoted limit', async () => {
    const token = currency === 'ETH' ? undefined : chain.tokens[currency]
    const decimals = token?.decimals ?? 18
    wallet = await newWallet(chain, seed)
    if (token) await chain.fund(token, wallet, 10n ** 24n)
    request = await shop.createRequest({ payee, amount, paymentCurrency: currency, reference })
    expect(request).toMatchObject({ status: 'OPEN', outstandingAmount: amount, paidAmount: '0' })
    await chain.mine({ baseFeePerGas: 8_000_000_000n })
    const gasPrice = await gasPriceNow(chain)
    const quoted = await shop.routes(request.paymentReference, { wallet, ...fee })
    expect(quoted).toMatchObject({ amount, currency: `${currency}-BASE`, degraded: false, warnings: [] })
    expect(quoted.routes.map(({ id }) => id)).toEqual(['REQUEST_NETWORK_PAYMENT'])
    const [route] = quoted.routes
    if (route === undefined) throw new Error('no route')
    const balances = () =>
      Promise.all(
        [wallet, payee, feeAddress].flatMap((owner) => [
          token ? chain.balanceOf(token, owner) : Promise.resolve(0n),
          chain.nativeBalance(owner),
        ]),
      )

    const before = await balances()
    const sent = await payAsQuoted({ chain, wallet, request, quoted, ...(token && { token }), feeAddress, gasPrice })
    const after = await balances()

    const gasUsed = sent.reduce((sum, { gasUsed }) => sum + gasUsed, 0n)
    const gasPaid = sent.reduce((sum, { gasUsed, effectiveGasPrice }) => sum + gasUsed * effectiveGasPrice, 0n)
    const source = units(route.sourceAmount, decimals)
    const received = units(amount, decimals)
    const platform = units(feeLine(route, 'PLATFORM')?.amount, decimals)
    expect(source).toBe(received + platform)
    const changes = after.map((balance, index) => balance - (before[index] ?? 0n))
    expect(changes).toEqual(
      token ? [-source, -gasPaid, received, 0n, platform, 0n] : [0n, -source - gasPaid, 0n, received, 0n, platform],
    )
    if (token) expect(await chain.allowance(token, wallet, chain.contracts.erc20FeeProxy)).toBe(0n)
    const quotedGas = units(feeLine(route, 'GAS')?.amount, 18)
    expect(gasPaid).toBe(gasUsed * gasPrice)
    expect(gasPaid).toBeLessThanOrEqual(quotedGas)
    expect(Number(gasPaid) / Number(quotedGas)).toBeGreaterThan(0.8)
  })

  it('is PENDING as soon as it is detected, and then has no routes', async () => {
    await service.scan()
    pending = await onlyPayment(request)
    expect(pending).toMatchObject({
      status: 'PENDING',
      completed: false,
      confirmations: 1,
      type: 'DIRECT',
      amount,
      currency: `${currency}-BASE`,
      invoiceAmount: amount,
      network: 'BASE',
      payer: wallet,
      payee,
      reference,
      requestId: request.requestId,
      refunds: [],
      refundedAmount: '0',
    })
    expect(pending.statusHistory.map(({ status }) => status)).toEqual(['PENDING'])
    expect(pending.fees.map(({ type }) => type)).toEqual(percentage === undefined ? [] : ['PLATFORM'])
    const receipt = await chain.receipt(pending.txHash)
    const gas = (receipt?.gasUsed ?? 0n) * (receipt?.effectiveGasPrice ?? 0n)
    expect(pending.gas).toMatchObject({ used: String(receipt?.gasUsed), currency: 'ETH-BASE' })
    expect(units(pending.gas.amount, 18)).toBe(gas)

    await chain.mine()
    await service.scan()
    expect(await onlyPayment(request)).toEqual({ ...pending, confirmations: 2 })
    const sums = { paidAmount: '0', pendingAmount: amount, outstandingAmount: '0', overpaidAmount: '0' }
    expect(await shop.request(request.paymentReference)).toMatchObject({ status: 'PENDING', ...sums })
    for (const asked of [{}, { amount: '0.5' }]) {
      const answer = await shop.routes(request.paymentReference, { wallet, ...asked })
      expect([answer.routes, reasonsOf(answer.warnings)]).toEqual([[], ['PAYMENT_PENDING']])
      expect(answer).toMatchObject({ amount: '0', degraded: false })
    }
  })

  it('is CONFIRMED when it is final, and does not change any more', async () => {
    await chain.mine({ blocks: FINALITY - 1 })
    await service.scan()
    const final = await onlyPayment(request)
    expect(final).toMatchObject({ status: 'CONFIRMED', completed: true, confirmations: FINALITY + 1 })
    expect(final.statusHistory.map(({ status }) => status)).toEqual(['PENDING', 'CONFIRMED'])
    expect(final.statusHistory[1]?.at).toBe(final.updatedAt)
    expect(Date.parse(final.updatedAt)).toBeGreaterThan(Date.parse(pending.updatedAt))
    expect(Date.parse(final.changedAt)).toBeGreaterThan(Date.parse(pending.changedAt))
    const settled = { status: '', completed: false, confirmations: 0, updatedAt: '', changedAt: '', statusHistory: [] }
    expect({ ...final, ...settled }).toEqual({ ...pending, ...settled })
    await chain.mine({ blocks: 5 })
    await service.scan()
    expect(await onlyPayment(request)).toEqual(final)
    const sums = { paidAmount: amount, pendingAmount: '0', outstandingAmount: '0', overpaidAmount: '0' }
    expect(await shop.request(request.paymentReference)).toMatchObject({ status: 'PAID', ...sums })
    const answer = await shop.routes(request.paymentReference, { wallet })
    expect([answer.routes, reasonsOf(answer.warnings)]).toEqual([[], ['REQUEST_ALREADY_PAID']])
  })

  it('is found by each of its identifiers', async () => {
    const { id, txHash, timestamp } = pending
    const { requestId, paymentReference } = request
    expect((await shop.call('GET', `/v1/payments/${id}`)).body).toEqual(await onlyPayment(request))
    expect((await shop.call('GET', `/v1/payments/${id.toUpperCase()}`)).status).toBe(200)
    const own: Query[] = [
      { txHash },
      { txHash: txHash.toUpperCase().replace('X', 'x') },
      { requestId },
      { paymentReference },
      { paymentReference: paymentReference.slice(2).toUpperCase() },
      { reference },
      { payer: wallet },
      { payee },
      { payee: payee.toLowerCase() },
      { walletAddress: wallet },
      { walletAddress: [payee, wallet] },
      { paymentReference: [nearMiss(paymentReference), paymentReference].join(',') },
    ]
    for (const query of own) expect([query, await idsFound(query)]).toEqual([query, [id]])
    const narrowing: Query[] = [
      { network: 'BASE' },
      { network: 'base,polygon' },
      { network: 'eip155:31501' },
      { network: '31501' },
      { currency },
      { currency: `${currency}-BASE` },
      { paymentCurrency: currency.toLowerCase() },
      { invoiceCurrency: `${currency}-BASE` },
      { status: 'confirmed' },
      { type: 'DIRECT' },
      { currency, minAmount: amount, maxAmount: amount },
      { minAmount: pending.amountInUSD, maxAmount: pending.amountInUSD },
      { fromDate: timestamp, toDate: timestamp },
      { fromDate: timestamp.slice(0, 10), toDate: timestamp.slice(0, 10) },
    ]
    for (const query of narrowing) expect([query, await idsFound({ payee, ...query })]).toEqual([query, [id]])
  })

  it('is not found by values that are nearly right', async () => {
    const { id, txHash, timestamp } = pending
    expect(await shop.reasonOf(`/v1/payments/${nearMiss(id)}`)).toEqual([404, 'PAYMENT_NOT_FOUND'])
    const misses: Query[] = [
      { txHash: nearMiss(txHash) },
      { requestId: nearMiss(request.requestId) },
      { paymentReference: nearMiss(request.paymentReference) },
      { reference: reference.toLowerCase() },
      { reference: 'INV-1' },
      { payer: payee },
      { payee: wallet },
      { walletAddress: feeAddress },
      { network: 'POLYGON', payee },
      { network: 'eip155:31502', payee },
      { network: 'eip155:8453', payee },
      { currency: `${currency}-POLYGON`, payee },
      { currency: currency === 'USDC' ? 'USDT' : 'USDC', payee },
      { invoiceCurrency: 'USD', payee },
      { status: 'PENDING,PARTIAL,REFUNDED,FAILED', payee },
      { type: 'CONVERSION', payee },
      { currency, minAmount: formatAmount(units(amount, 18) + 1n, 18), payee },
      { currency, maxAmount: formatAmount(units(amount, 18) - 1n, 18), payee },
      { fromDate: secondAfter(timestamp), payee },
      { toDate: new Date(Date.parse(timestamp) - 1).toISOString(), payee },
    ]
    for (const query of misses) expect([query, await idsFound(query)]).toEqual([query, []])
  })
})

describe('the outstanding amount', () => {
  it('is reduced by PENDING payments, so that nobody pays twice', async () => {
    const wallet = await newWallet(chain, 'left')
    const { USDC } = chain.tokens
    await chain.fund(USDC, wallet, 1_000_000000n)
    const request = await shop.createRequest({ payee: freshAddress('left'), amount: '100' })
    const { paymentReference } = request
    const pay = async (asked: Query) => {
      const quoted = await shop.routes(paymentReference, { wallet, ...asked })
      await payAsQuoted({ chain, wallet, request, quoted, token: USDC })
      await service.scan()
      return quoted
    }
    expect(await pay({ amount: '30' })).toMatchObject({ amount: '30', warnings: [] })
    expect(await shop.request(paymentReference)).toMatchObject({ status: 'PARTIALLY_PAID', outstandingAmount: '70' })
    const above = await shop.routes(paymentReference, { wallet, amount: '70.000001' })
    expect(above.routes.map(({ sourceAmount }) => sourceAmount)).toEqual(['70.000001'])
    expect(reasonsOf(above.warnings)).toEqual(['AMOUNT_ABOVE_OUTSTANDING'])
    expect(await pay({})).toMatchObject({ amount: '70', warnings: [] })
    expect(await shop.request(paymentReference)).toMatchObject({ status: 'PENDING', outstandingAmount: '0' })
    expect((await shop.paymentsOf(request)).map(({ amount }) => amount)).toEqual(['30', '70'])
    expect(reasonsOf((await shop.routes(paymentReference, { wallet })).warnings)).toEqual(['PAYMENT_PENDING'])
  })
})
