import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  encodeApprove,
  encodeErc20Payment,
  encodeNativePayment,
  ZERO_ADDRESS,
} from '../../demo/network/demo-contracts.ts'
import { parseAmount } from '../../src/domain/decimal.ts'
import type { Route } from '../../src/domain/route.ts'
import { erc20PaymentGas } from '../../src/routing/gas/gas.ts'
import { totalGas } from '../../src/routing/gas/steps.ts'
import { startTestChain, type TestChain, type TestToken } from '../support/chains/chain.ts'
import { encodeTransfer } from '../support/chains/contract-calls.ts'
import { configOf, createTestRouting, type EvmAddress, freshAddress, type TestRouting } from '../support/routing.ts'

const COIN = 10n ** 18n

describe('a quoted route, executed on the chain', () => {
  let chain: TestChain
  let routing: TestRouting
  beforeAll(async () => {
    chain = await startTestChain({ baseFeePerGas: 8_000_000_000n })
    routing = createTestRouting([configOf(chain, 'ETHEREUM')])
  })
  afterAll(() => chain.stop())

  /** A new wallet for each case, so that no case leaves something to the next. */
  async function newPayer(seed: string): Promise<EvmAddress> {
    const payer = freshAddress(`payer ${seed}`)
    await chain.setNativeBalance(payer, 100n * COIN)
    await chain.client.rpc.call('anvil_impersonateAccount', [payer])
    return payer
  }

  async function onlyRoute(question: Parameters<TestRouting['find']>[0]): Promise<Route> {
    const { routes, degraded } = await routing.find(question)
    expect(degraded).toBe(false)
    expect(routes.map((route) => route.id)).toEqual(['REQUEST_NETWORK_PAYMENT'])
    return routes[0] as Route
  }

  const gasOf = (route: Route) => lineOf(route, 'GAS')
  const lineOf = (route: Route, type: string) => route.feeBreakdown.find((line) => line.type === type)

  /** Gas used by all transactions is at most what was quoted, and at least four fifths of it. */
  function expectGasWithin(route: Route, used: bigint, gasPrice: bigint) {
    const quoted = (parseAmount(gasOf(route)?.amount ?? '', 18) as bigint) / gasPrice
    expect(Number(used) / Number(quoted)).toBeLessThanOrEqual(1)
    expect(Number(used) / Number(quoted)).toBeGreaterThanOrEqual(0.8)
  }

  async function gasPriceNow(): Promise<bigint> {
    const history = await chain.client.rpc.call<{ baseFeePerGas: string[]; reward: string[][] }>('eth_feeHistory', [
      '0x5',
      'latest',
      [50],
    ])
    const tips = history.reward.map(([tip]) => BigInt(tip ?? 0)).toSorted((a, b) => (a < b ? -1 : 1))
    return BigInt(history.baseFeePerGas.at(-1) ?? 0) + (tips[2] ?? 0n)
  }

  type Case = {
    token: 'USDC' | 'USDT' | 'DAI'
    percentage?: string
    known?: boolean
    spare?: bigint
    allowance?: bigint
  }
  const erc20Cases: Case[] = [
    { token: 'USDC' },
    { token: 'USDC', percentage: '0.5' },
    { token: 'USDC', percentage: '0.5', known: true, spare: 5n },
    { token: 'USDC', known: true },
    { token: 'USDC', known: true, spare: 1n, allowance: 10n ** 12n },
    { token: 'USDC', percentage: '100', allowance: 7n },
    { token: 'USDC', percentage: '0', known: true },
    { token: 'USDC', percentage: '0.0000000000001' },
    { token: 'USDT', percentage: '2.5' },
    { token: 'USDT', percentage: '2.5', allowance: 9n, spare: 3n },
    { token: 'DAI', percentage: '33.333333333333333333', spare: 1n },
  ]

  it.each(erc20Cases)('spends exactly what was quoted: %o', async (terms) => {
    const seed = JSON.stringify(terms, (_, value: unknown) => (typeof value === 'bigint' ? `${value}` : value))
    const token: TestToken = chain.tokens[terms.token]
    const payer = await newPayer(seed)
    const payee = freshAddress(`payee ${seed}`)
    const feeAddress = freshAddress(`platform ${seed}`)
    const amount = parseAmount('150.123456', token.decimals) as bigint
    if (terms.known) for (const holder of [payee, feeAddress]) await chain.fund(token, holder, 1n)
    if (terms.allowance) await chain.approve(payer, token, chain.contracts.erc20FeeProxy, terms.allowance)
    const paymentReference = routing.addRequest({
      payee,
      amount: '150.123456',
      invoiceCurrency: `${terms.token}-ETHEREUM`,
      paymentCurrency: `${terms.token}-ETHEREUM`,
      network: 'ETHEREUM',
    })
    const fee = terms.percentage === undefined ? {} : { feePercentage: terms.percentage, feeAddress }
    const question = { paymentReference, wallet: payer, ...fee }

    await chain.fund(token, payer, 2n * amount)
    const first = await onlyRoute(question)
    const sourceAmount = parseAmount(first.sourceAmount, token.decimals) as bigint
    // The wallet keeps just what the case says, so one more unit could not be pulled.
    await chain.send(
      payer,
      encodeTransfer(token.address, freshAddress('rest'), 2n * amount - sourceAmount - (terms.spare ?? 0n)),
    )
    const gasPrice = await gasPriceNow()
    const route = await onlyRoute(question)
    expect(route.sourceAmount).toBe(first.sourceAmount)

    const balances = () => Promise.all([payer, payee, feeAddress].map((owner) => chain.balanceOf(token, owner)))
    const before = await balances()
    const used = await take(route, payer, payee, token, { amount, paymentReference, feeAddress })
    const after = await balances()
    const platform = parseAmount(lineOf(route, 'PLATFORM')?.amount ?? '0', token.decimals) as bigint
    expect(after.map((balance, i) => balance - (before[i] ?? 0n))).toEqual([-sourceAmount, amount, platform])
    expect(after[0]).toBe(terms.spare ?? 0n)
    expectGasWithin(route, used, gasPrice)
    expect(await chain.allowance(token, payer, chain.contracts.erc20FeeProxy)).toBe(
      route.readiness.needsApproval ? 0n : (terms.allowance ?? 0n) - sourceAmount,
    )
  })

  /** Sends the route's steps in order, each by itself. @returns the gas that they used */
  async function take(
    route: Route,
    payer: EvmAddress,
    payee: EvmAddress,
    token: TestToken,
    terms: { amount: bigint; paymentReference: `0x${string}`; feeAddress: EvmAddress },
  ): Promise<bigint> {
    const proxy = chain.contracts.erc20FeeProxy
    const platform = lineOf(route, 'PLATFORM')
    const feeAmount = parseAmount(platform?.amount ?? '0', token.decimals) as bigint
    const feeAddress = platform ? terms.feeAddress : ZERO_ADDRESS
    const pay = { ...terms, to: payee, feeAmount, feeAddress }
    const calls = {
      APPROVE_RESET: encodeApprove(token.address, proxy, 0n),
      APPROVE: encodeApprove(token.address, proxy, parseAmount(route.sourceAmount, token.decimals) as bigint),
      PAY: encodeErc20Payment(proxy, token.address, pay),
    }
    let used = 0n
    for (const step of route.readiness.steps) {
      const sent = await chain.send(payer, calls[step as keyof typeof calls])
      used += sent.gasUsed ?? 0n
    }
    return used
  }

  const nativeCases: { percentage?: string; known?: boolean }[] = [
    {},
    { known: true },
    { percentage: '1' },
    { percentage: '1', known: true },
    { percentage: '0' },
    { percentage: '12.345678901234567891' },
  ]
  it.each(nativeCases)('spends exactly the native coins that were quoted: %o', async ({ percentage, known }) => {
    const seed = `native ${percentage} ${known}`
    const payer = await newPayer(seed)
    const payee = freshAddress(`payee ${seed}`)
    const feeAddress = freshAddress(`platform ${seed}`)
    if (known) for (const holder of [payee, feeAddress]) await chain.setNativeBalance(holder, 1n)
    const terms = { payee, amount: '1.5', invoiceCurrency: 'ETH-ETHEREUM', paymentCurrency: 'ETH-ETHEREUM' }
    const paymentReference = routing.addRequest({ ...terms, network: 'ETHEREUM' })
    const fee = percentage === undefined ? {} : { feePercentage: percentage, feeAddress }
    const gasPrice = await gasPriceNow()
    const route = await onlyRoute({ paymentReference, wallet: payer, ...fee })
    expect(route.readiness).toEqual({ hasEnoughGas: true, needsApproval: false, steps: ['PAY'] })
    expect(route.tokenAddress).toBeUndefined()

    const balances = () => Promise.all([payer, payee, feeAddress].map((owner) => chain.nativeBalance(owner)))
    const before = await balances()
    const feeAmount = parseAmount(lineOf(route, 'PLATFORM')?.amount ?? '0', 18) as bigint
    const value = parseAmount(route.sourceAmount, 18) as bigint
    const call = {
      to: payee,
      amount: 15n * 10n ** 17n,
      paymentReference,
      feeAmount,
      ...(percentage ? { feeAddress } : {}),
    }
    const encoded = encodeNativePayment(chain.contracts.ethereumFeeProxy, call, true)
    expect(encoded.value).toBe(value)
    const sent = await chain.send(payer, encoded)
    const after = await balances()
    const gas = (sent.gasUsed as bigint) * (sent.effectiveGasPrice as bigint)
    expect(after.map((balance, i) => balance - (before[i] ?? 0n))).toEqual([-value - gas, 15n * 10n ** 17n, feeAmount])
    expectGasWithin(route, sent.gasUsed as bigint, gasPrice)
  })

  it('covers the gas of a token that takes a fee on transfer', async () => {
    const { TAX } = chain.tokens
    const payer = await newPayer('tax')
    await chain.fund(TAX, payer, 10_000n)
    const payment = { kind: 'ERC20', token: TAX.address, to: freshAddress('tax payee'), amount: 1_000n } as const
    const fee = { feeAmount: 10n, feeAddress: freshAddress('tax platform') }
    const terms = { ...payment, ...fee, paymentReference: '0xffffffffffffffff' as const }
    // The very first transfer also fills the slot where such a token keeps its fees.
    await chain.pay(payer, { ...terms, to: freshAddress('first tax payee'), feeAddress: freshAddress('first tax fee') })
    const sent = await chain.pay(payer, terms)
    const facts = { payeeIsNew: true, feeReceiver: 'NEW', clearsAllowance: true, clearsBalance: false } as const
    const quoted = totalGas([{ gasLimit: erc20PaymentGas(facts) }])
    expect(sent.gasUsed as bigint).toBeLessThanOrEqual(quoted)
  })

  it('counts the gas at the next base fee and the median tip', async () => {
    const payer = await newPayer('gas')
    const terms = { payee: freshAddress('gas payee'), amount: '1', network: 'ETHEREUM' }
    const currencies = { invoiceCurrency: 'ETH-ETHEREUM', paymentCurrency: 'ETH-ETHEREUM' }
    const paymentReference = routing.addRequest({ ...terms, ...currencies })
    const gasPrice = await gasPriceNow()
    const route = await onlyRoute({ paymentReference, wallet: payer })
    const quoted = parseAmount(gasOf(route)?.amount ?? '', 18) as bigint
    expect(quoted % gasPrice).toBe(0n)
    expect(gasPrice).toBeGreaterThan(10n ** 9n)
  })
})
