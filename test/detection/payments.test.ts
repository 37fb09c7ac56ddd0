import type { Knex } from 'knex'
import { keccak256 } from 'viem'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { encodeErc20Payment } from '../../demo/network/demo-contracts.ts'
import type { Detection } from '../../src/detection/detection.ts'
import type { Account } from '../../src/domain/account.ts'
import type { Address } from '../../src/domain/address.ts'
import { startTestChain, type TestChain } from '../support/chains/chain.ts'
import { createTestDatabase, type TestDatabase } from '../support/data/database.ts'
import {
  addAccount,
  balanceOf,
  canonical,
  configOf,
  detect,
  makeRequest,
  paymentsOf,
  storeRequest,
  unmatchedOf,
} from '../support/detection.ts'

const USD = 10n ** 8n
const COIN = 10n ** 18n

let database: TestDatabase
let knex: Knex
let chain: TestChain
let other: TestChain
let detection: Detection
let account: Account

beforeAll(async () => {
  ;[database, chain, other] = await Promise.all([
    createTestDatabase(),
    startTestChain({ chainId: 31_411 }),
    startTestChain({ chainId: 31_412, addressSeed: 0 }),
  ])
  knex = database.knex
  detection = detect(knex, [configOf(chain, 'BASE'), configOf(other, 'POLYGON')])
  account = await addAccount(knex, 'shop')
})
afterAll(async () => {
  await Promise.all([chain?.stop(), other?.stop()])
  await database?.drop()
})

function freshAddress(seed: string): Address {
  return canonical(`0x${keccak256(new TextEncoder().encode(seed)).slice(-40)}`)
}

/** A stored request with its own payee. */
async function request(seed: string, terms: Partial<Parameters<typeof makeRequest>[0]> = {}) {
  return storeRequest(knex, account, makeRequest({ payee: freshAddress(seed), network: 'BASE', ...terms }))
}

describe('payments of every kind', () => {
  it('stores a token payment with fee, gas, prices and payer', async () => {
    const [payer] = chain.wallets
    const wanted = await request('erc20', { reference: 'INV-1' })
    const feeAddress = freshAddress('fee')
    await chain.fund(chain.tokens.USDC, payer, 200_000000n)
    const paid = await chain.pay(payer, {
      kind: 'ERC20',
      token: chain.tokens.USDC.address,
      to: wanted.payee as `0x${string}`,
      amount: 100_000000n,
      paymentReference: wanted.paymentReference,
      feeAmount: 500000n,
      feeAddress: feeAddress as `0x${string}`,
    })
    await detection.scanOnce()
    const [payment, ...more] = await paymentsOf(knex, account, wanted)
    expect(more).toEqual([])
    expect(payment).toMatchObject({
      status: 'PENDING',
      type: 'DIRECT',
      amount: '100',
      currency: 'USDC-BASE',
      currency_symbol: 'USDC',
      amount_in_usd: '100',
      invoice_amount: '100',
      invoice_currency: 'USDC-BASE',
      network: 'BASE',
      source_network: 'BASE',
      chain_id: 'eip155:31411',
      event_index: 0,
      txHash: paid.transactionHash,
      payer: canonical(payer),
      initiator: canonical(payer),
      payee: wanted.payee,
      reference: 'INV-1',
      confirmations: null,
      final: false,
    })
    expect(payment.fees).toEqual([
      {
        type: 'PLATFORM',
        stage: 'SENDING',
        amount: '0.5',
        currency: 'USDC-BASE',
        amountInUsd: '0.5',
        receiverAddress: feeAddress,
        network: 'BASE',
      },
    ])
    const gas = (paid.gasUsed ?? 0n) * (paid.effectiveGasPrice ?? 0n)
    expect(payment.gas).toMatchObject({ used: String(paid.gasUsed), currency: 'ETH-BASE' })
    expect(Number(payment.gas.amount)).toBeCloseTo(Number(gas) / 1e18, 15)
    expect(Number(payment.gas.amountInUsd)).toBeCloseTo((Number(gas) / 1e18) * 3_000, 9)
    expect(payment.exchange_rates.map((rate: { from: string; source: string }) => [rate.from, rate.source])).toEqual([
      ['USDC-BASE', 'feed'],
      ['ETH-BASE', 'feed'],
    ])
    expect(await balanceOf(knex, account, wanted)).toMatchObject({ status: 'PENDING', outstandingAmount: '0' })
  })

  it.each([true, false])('stores a payment in the chain’s own coin (exact: %s)', async (exact) => {
    const wanted = await request(`native ${exact}`, { paymentCurrency: 'ETH-BASE', amount: '1.5' })
    const payment = { kind: 'NATIVE', amount: (15n * COIN) / 10n, exact } as const
    const to = wanted.payee as `0x${string}`
    await chain.pay(chain.wallets[1], { ...payment, to, paymentReference: wanted.paymentReference })
    await detection.scanOnce()
    const [stored] = await paymentsOf(knex, account, wanted)
    expect(stored).toMatchObject({ amount: '1.5', currency: 'ETH-BASE', amount_in_usd: '4500', token_address: null })
    expect(stored.payer).toBe(canonical(chain.wallets[1]))
    expect(stored.exchange_rates).toHaveLength(1)
  })

  it('counts a conversion once, in the invoice currency, at its own rate', async () => {
    const wanted = await request('fiat erc20', { invoiceCurrency: 'USD', paymentCurrency: 'DAI-BASE', amount: '10' })
    await chain.setFeed(chain.tokens.DAI.feed, { answer: 2n * USD })
    await chain.fund(chain.tokens.DAI, chain.wallets[0], 100n * COIN)
    await chain.pay(chain.wallets[0], {
      kind: 'ERC20_CONVERSION',
      token: chain.tokens.DAI.address,
      to: wanted.payee as `0x${string}`,
      amount: 10n * USD,
      paymentReference: wanted.paymentReference,
      feeAmount: USD,
      feeAddress: freshAddress('fee') as `0x${string}`,
    })
    await chain.setFeed(chain.tokens.DAI.feed, { answer: USD })
    await detection.scanOnce()
    const [stored, ...more] = await paymentsOf(knex, account, wanted)
    expect(more).toEqual([])
    expect(stored).toMatchObject({ type: 'CONVERSION', amount: '5', invoice_amount: '10', amount_in_usd: '10' })
    expect(stored.exchange_rates[0]).toMatchObject({ from: 'USD', to: 'DAI-BASE', rate: '0.5', source: 'conversion' })
    expect(stored.fees).toMatchObject([{ amount: '0.5', amountInUsd: '1' }])
    expect(await balanceOf(knex, account, wanted)).toMatchObject({ pendingAmount: '10', outstandingAmount: '0' })
  })

  it('counts a conversion into the chain’s own coin', async () => {
    const wanted = await request('fiat native', { invoiceCurrency: 'USD', paymentCurrency: 'ETH-BASE', amount: '300' })
    await chain.pay(chain.wallets[2], {
      kind: 'NATIVE_CONVERSION',
      to: wanted.payee as `0x${string}`,
      amount: 300n * USD,
      paymentReference: wanted.paymentReference,
    })
    await detection.scanOnce()
    const [stored] = await paymentsOf(knex, account, wanted)
    // The contract's division loses one wei.
    const amount = '0.099999999999999999'
    expect(stored).toMatchObject({ type: 'CONVERSION', amount, invoice_amount: '300', amount_in_usd: '300' })
    expect(stored.payer).toBe(canonical(chain.wallets[2]))
  })

  it('counts what the payee received of a token that keeps a part of each transfer', async () => {
    const wanted = await request('tax', { paymentCurrency: 'TAX-BASE' })
    await chain.fund(chain.tokens.TAX, chain.wallets[0], 1_000n * COIN)
    const payment = { kind: 'ERC20', token: chain.tokens.TAX.address, amount: 100n * COIN } as const
    const to = wanted.payee as `0x${string}`
    const { paymentReference } = wanted
    const fee = { feeAmount: 5n * COIN, feeAddress: freshAddress('taxed fee') as `0x${string}` }
    await chain.pay(chain.wallets[0], { ...payment, ...fee, to, paymentReference })
    await detection.scanOnce()
    expect(await paymentsOf(knex, account, wanted)).toMatchObject([
      { amount: '99', invoice_amount: '99', fees: [{ amount: '4.95', receiverAddress: fee.feeAddress }] },
    ])
    expect((await balanceOf(knex, account, wanted)).outstandingAmount).toBe('1')
  })

  it('has no fee line where nobody was charged', async () => {
    const wanted = await request('no fee address')
    const { USDC } = chain.tokens
    await chain.fund(USDC, chain.wallets[0], 10_000000n)
    const payment = { kind: 'ERC20', token: USDC.address, amount: 1_000000n, feeAmount: 5n } as const
    const to = wanted.payee as `0x${string}`
    await chain.pay(chain.wallets[0], { ...payment, to, paymentReference: wanted.paymentReference })
    await detection.scanOnce()
    expect(await paymentsOf(knex, account, wanted)).toMatchObject([{ amount: '1', fees: [] }])
  })

  it('counts three payments of one reference in one transaction as three', async () => {
    const wanted = await request('three at once')
    const payment = {
      kind: 'ERC20',
      token: chain.tokens.USDC.address,
      to: wanted.payee as `0x${string}`,
      paymentReference: wanted.paymentReference,
    } as const
    await chain.payInOneTransaction(chain.wallets[3], [
      { ...payment, amount: 10_000000n },
      { ...payment, amount: 20_000000n },
      { ...payment, amount: 30_000000n },
    ])
    await detection.scanOnce()
    const stored = await paymentsOf(knex, account, wanted)
    expect(stored.map((row) => [row.event_index, row.amount])).toEqual([
      [0, '10'],
      [1, '20'],
      [2, '30'],
    ])
    expect(new Set(stored.map(({ id }) => id)).size).toBe(3)
  })

  it('takes prices of pegged tokens from the peg, and leaves unknown prices out', async () => {
    const wanted = await request('peg', { paymentCurrency: 'USDT-BASE' })
    const { USDT } = chain.tokens
    await chain.fund(USDT, chain.wallets[4], 100_000000n)
    const { timestampSec } = await chain.client.head()
    await chain.setFeed(chain.native.feed, { answer: 3_000n * USD, updatedAtSec: timestampSec - 10_000 })
    const payment = { kind: 'ERC20', token: USDT.address, amount: 100_000000n } as const
    const to = wanted.payee as `0x${string}`
    await chain.pay(chain.wallets[4], { ...payment, to, paymentReference: wanted.paymentReference })
    await chain.setFeed(chain.native.feed, { answer: 3_000n * USD })
    await detection.scanOnce()
    const [stored] = await paymentsOf(knex, account, wanted)
    expect(stored.exchange_rates).toEqual([{ from: 'USDT-BASE', to: 'USD', rate: '1', source: 'peg' }])
    expect(stored).toMatchObject({ amount_in_usd: '100' })
    expect(stored.gas).not.toHaveProperty('amountInUsd')
  })
})

describe('what only looks like a payment', () => {
  const spoofs: Record<string, (to: `0x${string}`, paymentReference: `0x${string}`) => Promise<string[]>> = {
    'a worthless token of the same name': async (to, paymentReference) => {
      const fake = await chain.deployToken({ symbol: 'USDC', decimals: 6 })
      await chain.fund(fake, chain.wallets[5], 100_000000n)
      await chain.pay(chain.wallets[5], {
        kind: 'ERC20',
        token: fake.address,
        to,
        amount: 100_000000n,
        paymentReference,
      })
      return ['WRONG_TOKEN']
    },
    'the real token, sent to oneself': async (_, paymentReference) => {
      const { USDC } = chain.tokens
      const self = chain.wallets[5]
      await chain.fund(USDC, self, 100_000000n)
      const payment = { kind: 'ERC20', token: USDC.address, amount: 100_000000n, paymentReference } as const
      await chain.pay(self, { ...payment, to: self })
      return ['WRONG_PAYEE']
    },
    'the real token on another chain': async (to, paymentReference) => {
      const { USDC } = other.tokens
      await other.fund(USDC, other.wallets[5], 100_000000n)
      const payment = { kind: 'ERC20', token: USDC.address, amount: 100_000000n, paymentReference } as const
      await other.pay(other.wallets[5], { ...payment, to })
      return ['WRONG_CHAIN']
    },
    'the event of a look-alike contract': async (to, paymentReference) => {
      const proxy = await chain.deployLookAlikeProxy()
      const terms = { to, amount: 100_000000n, paymentReference }
      await chain.send(chain.wallets[5], encodeErc20Payment(proxy, chain.tokens.USDC.address, terms))
      return []
    },
    'coins instead of tokens': async (to, paymentReference) => {
      await chain.pay(chain.wallets[5], { kind: 'NATIVE', to, amount: COIN, paymentReference })
      return ['WRONG_TOKEN']
    },
    'nothing at all': async (to, paymentReference) => {
      const payment = { kind: 'ERC20', token: chain.tokens.USDC.address, amount: 0n, paymentReference } as const
      await chain.pay(chain.wallets[5], { ...payment, to })
      return ['NOTHING_RECEIVED']
    },
  }

  it.each(Object.keys(spoofs))('leaves the balance untouched: %s', async (name) => {
    await detection.scanOnce()
    await knex('unmatched_events').delete()
    const wanted = await request(`spoof ${name}`)
    const reasons = await spoofs[name]?.(wanted.payee as `0x${string}`, wanted.paymentReference)
    await detection.scanOnce()
    expect(await paymentsOf(knex, account, wanted)).toEqual([])
    expect(await balanceOf(knex, account, wanted)).toMatchObject({ status: 'OPEN', outstandingAmount: '100' })
    expect(await unmatchedOf(knex, account.id)).toEqual(reasons)
  })

  it('does not count a payment without conversion for an invoice in fiat', async () => {
    await knex('unmatched_events').delete()
    const wanted = await request('plain for fiat', { invoiceCurrency: 'USD' })
    const { USDC } = chain.tokens
    await chain.fund(USDC, chain.wallets[0], 100_000000n)
    const payment = { kind: 'ERC20', token: USDC.address, amount: 100_000000n } as const
    const to = wanted.payee as `0x${string}`
    await chain.pay(chain.wallets[0], { ...payment, to, paymentReference: wanted.paymentReference })
    await detection.scanOnce()
    expect(await unmatchedOf(knex, account.id)).toEqual(['NOT_A_CONVERSION'])
    expect((await balanceOf(knex, account, wanted)).outstandingAmount).toBe('100')
  })

  it('does not let a second account take a payment by importing its reference', async () => {
    const wanted = await request('imported by another')
    const copycat = await addAccount(knex, 'copycat')
    const stolen = { ...wanted, payee: freshAddress('thief') }
    await storeRequest(knex, copycat, { ...stolen, paymentReference: wanted.paymentReference })
    await chain.fund(chain.tokens.USDC, chain.wallets[0], 100_000000n)
    const payment = { kind: 'ERC20', token: chain.tokens.USDC.address, amount: 100_000000n } as const
    const to = wanted.payee as `0x${string}`
    await chain.pay(chain.wallets[0], { ...payment, to, paymentReference: wanted.paymentReference })
    await detection.scanOnce()
    expect(await paymentsOf(knex, account, wanted)).toHaveLength(1)
    expect(await paymentsOf(knex, copycat, stolen)).toEqual([])
    expect(await unmatchedOf(knex, copycat.id)).toEqual(['WRONG_PAYEE'])
  })

  it('gives each account that has the same request a payment of its own', async () => {
    const wanted = await request('held by two')
    const second = await addAccount(knex, 'second')
    await storeRequest(knex, second, wanted)
    await chain.fund(chain.tokens.USDC, chain.wallets[0], 100_000000n)
    const payment = { kind: 'ERC20', token: chain.tokens.USDC.address, amount: 100_000000n } as const
    const to = wanted.payee as `0x${string}`
    await chain.pay(chain.wallets[0], { ...payment, to, paymentReference: wanted.paymentReference })
    await detection.scanOnce()
    const [own] = await paymentsOf(knex, account, wanted)
    const [theirs] = await paymentsOf(knex, second, wanted)
    expect(own.txHash).toBe(theirs.txHash)
    expect(own.id).not.toBe(theirs.id)
  })
})
