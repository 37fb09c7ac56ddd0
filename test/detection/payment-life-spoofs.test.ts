import { type Hex, zeroAddress } from 'viem'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { encodeErc20Payment } from '../../demo/network/demo-contracts.ts'
import { startTestChain, type TestChain } from '../support/chains/chain.ts'
import { encodeTransfer } from '../support/chains/contract-calls.ts'
import {
  type Caller,
  freshAddress,
  type LifeService,
  newWallet,
  type RequestJson,
  startLifeService,
  type Terms,
} from '../support/chains/payment-life.ts'
import { createTestDatabase, type TestDatabase } from '../support/data/database.ts'

const COIN = 10n ** 18n
const USD = 10n ** 8n
const HUNDRED = 100_000000n

let database: TestDatabase
let chain: TestChain
let other: TestChain
let service: LifeService
let shop: Caller
let attacker: Hex

beforeAll(async () => {
  ;[database, chain, other] = await Promise.all([
    createTestDatabase(),
    startTestChain({ chainId: 31_521 }),
    // Deterministic deployments: tokens and proxies have the same addresses on both chains.
    startTestChain({ chainId: 31_522 }),
  ])
  service = await startLifeService(database.knex, [chain.config({ name: 'BASE' }), other.config({ name: 'POLYGON' })])
  shop = await service.caller('shop')
  attacker = await newWallet(chain, 'attacker')
  await newWallet(other, 'attacker')
  await chain.fund(chain.tokens.USDC, attacker, 10n ** 15n)
  await other.fund(other.tokens.USDC, attacker, 10n ** 15n)
})
afterAll(async () => {
  await service?.stop()
  await Promise.all([chain?.stop(), other?.stop(), database?.drop()])
})

let seeds = 0
const freshPayee = () => freshAddress(`spoofed ${seeds++}`)
const createRequest = (terms: Partial<Terms> = {}) =>
  shop.createRequest({ payee: freshPayee(), amount: '100', ...terms })

/** Reads both chains after everything on them is final. */
async function scan(): Promise<void> {
  await Promise.all([chain.mine({ blocks: 3 }), other.mine({ blocks: 3 })])
  await service.scan()
}

const usdc = (request: RequestJson, terms: { to?: Hex; token?: Hex; amount?: bigint } = {}) =>
  ({
    kind: 'ERC20',
    token: chain.tokens.USDC.address,
    to: request.payee,
    amount: HUNDRED,
    paymentReference: request.paymentReference,
    ...terms,
  }) as const

interface Spoof {
  readonly terms?: Partial<Terms>
  readonly attack: (request: RequestJson) => Promise<unknown>
  readonly reasons: readonly string[]
}

const spoofs: Record<string, Spoof> = {
  'a worthless token of the same name': {
    attack: async (request) => {
      const fake = await chain.deployToken({ symbol: 'USDC', decimals: 6 })
      await chain.fund(fake, attacker, HUNDRED)
      await chain.pay(attacker, usdc(request, { token: fake.address }))
    },
    reasons: ['WRONG_TOKEN'],
  },
  'another real token': {
    attack: async (request) => {
      await chain.fund(chain.tokens.DAI, attacker, 100n * COIN)
      await chain.pay(attacker, usdc(request, { token: chain.tokens.DAI.address, amount: 100n * COIN }))
    },
    reasons: ['WRONG_TOKEN'],
  },
  'coins for tokens': {
    attack: ({ payee: to, paymentReference }) =>
      chain.pay(attacker, { kind: 'NATIVE', to, paymentReference, amount: COIN }),
    reasons: ['WRONG_TOKEN'],
  },
  'tokens for coins': {
    terms: { paymentCurrency: 'ETH', amount: '1' },
    attack: (request) => chain.pay(attacker, usdc(request)),
    reasons: ['WRONG_TOKEN'],
  },
  'the real token, sent to oneself': {
    attack: (request) => chain.pay(attacker, usdc(request, { to: attacker })),
    reasons: ['WRONG_PAYEE'],
  },
  'the real token, sent to oneself as a "refund" of a payment that was never made': {
    terms: { refundAddress: freshAddress('spoofed refund') },
    attack: (request) => chain.pay(attacker, usdc(request, { to: freshAddress('spoofed refund') })),
    reasons: ['WRONG_PAYEE'],
  },
  'the real token on another chain': {
    attack: (request) => other.pay(attacker, usdc(request)),
    reasons: ['WRONG_CHAIN'],
  },
  'nothing, of the real token': {
    attack: (request) => chain.pay(attacker, usdc(request, { amount: 0n })),
    reasons: ['NOTHING_RECEIVED'],
  },
  'a conversion, for what is not stated in dollars': {
    attack: (request) =>
      chain.pay(attacker, { ...usdc(request), kind: 'ERC20_CONVERSION', amount: 100n * USD, maxToSpend: 2n * HUNDRED }),
    reasons: ['WRONG_TOKEN'],
  },
  'a plain payment, for what is stated in dollars': {
    terms: { invoiceCurrency: 'USD' },
    attack: (request) => chain.pay(attacker, usdc(request)),
    reasons: ['NOT_A_CONVERSION'],
  },
  // Logs are read by contract, so these are never seen.
  'the event of a look-alike contract': {
    attack: async (request) =>
      chain.send(
        attacker,
        encodeErc20Payment(await chain.deployLookAlikeProxy(), chain.tokens.USDC.address, usdc(request)),
      ),
    reasons: [],
  },
  'a genuine proxy that is not listed': {
    attack: async (request) => chain.pay(attacker, { ...usdc(request), proxy: await chain.deployErc20FeeProxy() }),
    reasons: [],
  },
  // It emits no event, so there is nothing that could be FAILED.
  'a payment that is reverted': {
    attack: async ({ payee: to, paymentReference }) => {
      const terms = { to, amount: 10n ** 30n, paymentReference }
      const call = encodeErc20Payment(chain.contracts.erc20FeeProxy, chain.tokens.USDC.address, terms)
      const hash = await chain.client.send(attacker, call)
      await chain.mine()
      expect((await chain.receipt(hash))?.succeeded).toBe(false)
    },
    reasons: [],
  },
  'a plain transfer to the payee': {
    attack: ({ payee }) => chain.send(attacker, encodeTransfer(chain.tokens.USDC.address, payee, HUNDRED)),
    reasons: [],
  },
}

describe('what is no payment', () => {
  it.each(Object.keys(spoofs))('changes no balance and no status: %s', async (name) => {
    const { terms = {}, attack, reasons } = spoofs[name] as Spoof
    const request = await createRequest(terms)
    await attack(request)
    await scan()
    expect(await shop.request(request.paymentReference)).toEqual(request)
    expect(request).toMatchObject({ status: 'OPEN', outstandingAmount: request.amount, paidAmount: '0' })
    expect(await shop.paymentsOf(request)).toEqual([])
    expect((await shop.search({ requestId: request.requestId })).payments).toEqual([])
    expect((await shop.search({ payee: request.payee })).payments).toEqual([])
    expect(await service.unmatchedOf(shop, request)).toEqual(reasons)
  })

  it('does not change a payment in the same transaction', async () => {
    const request = await createRequest()
    const fake = await chain.deployToken({ symbol: 'USDC', decimals: 6 })
    const decoy = freshPayee()
    await chain.payInOneTransaction(attacker, [
      usdc(request, { token: fake.address }),
      usdc(request, { to: decoy }),
      usdc(request, { amount: 40_000000n }),
      usdc(request, { amount: 0n }),
    ])
    await scan()
    const payments = await shop.paymentsOf(request)
    expect(payments.map(({ amount, eventIndex }) => [amount, eventIndex])).toEqual([['40', 2]])
    expect(await service.unmatchedOf(shop, request)).toEqual(['WRONG_TOKEN', 'WRONG_PAYEE', 'NOTHING_RECEIVED'])
    expect(await shop.request(request.paymentReference)).toMatchObject({ paidAmount: '40', outstandingAmount: '60' })
  })

  it('counts the index of an event among all payment events, whoever emitted them', async () => {
    const request = await createRequest()
    const unlisted = await chain.deployErc20FeeProxy()
    await chain.payInOneTransaction(attacker, [
      { ...usdc(request, { amount: 7_000000n }), proxy: unlisted },
      usdc(request, { amount: 8_000000n }),
    ])
    await scan()
    const payments = await shop.paymentsOf(request)
    expect(payments.map(({ amount, eventIndex }) => [amount, eventIndex])).toEqual([['8', 1]])
  })
})

describe('an event that claims more than what happened', () => {
  it('has no fee line where no address received it', async () => {
    const request = await createRequest()
    const before = await chain.balanceOf(chain.tokens.USDC, attacker)
    await chain.pay(attacker, { ...usdc(request), feeAmount: 5_000000n, feeAddress: zeroAddress })
    expect(before - (await chain.balanceOf(chain.tokens.USDC, attacker))).toBe(HUNDRED)
    await scan()
    expect(await shop.paymentsOf(request)).toMatchObject([{ amount: '100', fees: [], status: 'CONFIRMED' }])
    expect(await shop.request(request.paymentReference)).toMatchObject({ status: 'PAID', overpaidAmount: '0' })
  })

  it('never counts the fee towards the amount', async () => {
    const request = await createRequest()
    await chain.pay(attacker, {
      ...usdc(request, { amount: 1_000000n }),
      feeAmount: 99_000000n,
      feeAddress: request.payee,
    })
    await scan()
    expect(await shop.paymentsOf(request)).toMatchObject([{ amount: '1', fees: [{ amount: '99' }], status: 'PARTIAL' }])
    expect((await shop.request(request.paymentReference)).outstandingAmount).toBe('99')
  })

  it('counts what the payee received of a token that keeps a part of each transfer', async () => {
    const request = await createRequest({ paymentCurrency: 'TAX' })
    const { TAX } = chain.tokens
    await chain.fund(TAX, attacker, 1_000n * COIN)
    await chain.pay(attacker, usdc(request, { token: TAX.address, amount: 100n * COIN }))
    await scan()
    expect(await chain.balanceOf(TAX, request.payee)).toBe(99n * COIN)
    expect(await shop.paymentsOf(request)).toMatchObject([{ amount: '99', invoiceAmount: '99', status: 'PARTIAL' }])
    expect(await shop.request(request.paymentReference)).toMatchObject({
      status: 'PARTIALLY_PAID',
      outstandingAmount: '1',
    })
  })
})

describe('several accounts', () => {
  it('that have the same request each get a payment, and others see nothing', async () => {
    const [second, stranger] = [await service.caller('second'), await service.caller('stranger')]
    const request = await createRequest({ reference: 'INV-7' })
    const { requestId, salt, payee, paymentReference } = request
    const copy = await second.createRequest({ requestId, salt, payee, amount: '250' })
    expect(copy.paymentReference).toBe(paymentReference)
    await chain.pay(attacker, usdc(request))
    await scan()
    const [own] = await shop.paymentsOf(request)
    const [theirs] = await second.paymentsOf(request)
    expect([own?.status, theirs?.status]).toEqual(['CONFIRMED', 'PARTIAL'])
    expect(theirs?.txHash).toBe(own?.txHash)
    expect(theirs?.id).not.toBe(own?.id)
    expect(theirs).not.toHaveProperty('reference')
    expect(await shop.request(paymentReference)).toMatchObject({ status: 'PAID', overpaidAmount: '0' })
    expect(await second.request(paymentReference)).toMatchObject({ status: 'PARTIALLY_PAID', outstandingAmount: '150' })
    for (const [caller, id] of [
      [second, own?.id],
      [shop, theirs?.id],
      [stranger, own?.id],
    ] as const) {
      expect(await caller.reasonOf(`/v1/payments/${id}`)).toEqual([404, 'PAYMENT_NOT_FOUND'])
    }
    for (const query of [{ paymentReference }, { txHash: own?.txHash ?? '' }, { payee }, { requestId }, {}]) {
      expect((await stranger.search(query)).payments).toEqual([])
    }
    expect(await stranger.reasonOf(`/v1/request/${paymentReference}`)).toEqual([404, 'REQUEST_NOT_FOUND'])
    const routes = `/v1/request/${paymentReference}/routes`
    expect(await stranger.reasonOf(routes, { wallet: attacker })).toEqual([404, 'REQUEST_NOT_FOUND'])
  })

  it('cannot take a payment by importing its reference with other terms, before or after it', async () => {
    const [early, late] = [await service.caller('early'), await service.caller('late')]
    const request = await createRequest()
    const { requestId, salt, payee, paymentReference } = request
    const terms = { requestId, salt, payee, amount: '100' }
    await early.createRequest({ ...terms, paymentCurrency: 'DAI' })
    await chain.pay(attacker, usdc(request))
    await scan()
    await late.createRequest({ ...terms, network: 'POLYGON' })
    expect(await shop.paymentsOf(request)).toHaveLength(1)
    const strangers = [
      [early, 'WRONG_TOKEN'],
      [late, 'WRONG_CHAIN'],
    ] as const
    for (const [caller, reason] of strangers) {
      expect(await caller.paymentsOf(request)).toEqual([])
      expect(await caller.request(paymentReference)).toMatchObject({ status: 'OPEN', outstandingAmount: '100' })
      expect(await service.unmatchedOf(caller, request)).toEqual([reason])
    }
    expect(await service.unmatchedOf(shop, request)).toEqual([])
    expect((await shop.request(paymentReference)).status).toBe('PAID')
  })
})
