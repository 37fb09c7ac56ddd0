import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createChainDirectory } from '../../../chains/chain-directory.ts'
import type { ChainConfig } from '../../../chains/chains-file.ts'
import { createTokenDirectory } from '../../../chains/token-directory.ts'
import type { Address } from '../../../domain/address.ts'
import { type Token } from '../../../domain/currency.ts'
import { type Decimal, parseDecimal } from '../../../domain/decimal.ts'
import { breakDownCosts } from '../../plans/costs.ts'
import type { Price } from '../../scan/wallet-state.ts'
import { checkLoss, costOfBridging, priceImpactOf, USUAL_LOSS_CAP, usdOf } from './lifi-costs.ts'
import { type LifiQuestion, RejectedQuoteError } from './lifi-question.ts'
import type { LifiFee, LifiQuote } from './lifi-quote.ts'

const address = (digit: string) => `0x${digit.repeat(40)}` as Address
const chainOf = (name: string, chainId: number, tokens: readonly [string, number, string][]): ChainConfig => ({
  name,
  chainId,
  rpcUrls: ['http://localhost'],
  multicall: address('f'),
  native: { symbol: 'ETH', decimals: 18 },
  tokens: tokens.map(([symbol, decimals, digit]) => ({ symbol, decimals, address: address(digit) })),
  contracts: [],
  finality: { useFinalizedTag: false, depth: 1 },
  blockTimeSeconds: 2,
})
const configs = [
  chainOf('ETHEREUM', 1, [
    ['DAI', 18, 'a'],
    ['OLD', 2, 'b'],
  ]),
  chainOf('BASE', 8453, [['USDC', 6, 'c']]),
]
const [chains, tokens] = [createChainDirectory(configs), createTokenDirectory(configs)]
const get = (id: string) => tokens.byId(id) as Token
const [DAI, ETH, OLD, USDC] = [get('DAI-ETHEREUM'), get('ETH-ETHEREUM'), get('OLD-ETHEREUM'), get('USDC-BASE')]

const prices = fc.record({
  [DAI.id]: fc.bigInt({ min: 1n, max: 10n ** 9n }),
  [ETH.id]: fc.bigInt({ min: 1n, max: 10n ** 13n }),
  [USDC.id]: fc.bigInt({ min: 1n, max: 10n ** 9n }),
})
const priceIn =
  (known: Record<string, bigint>) =>
  ({ id }: Token): Price | undefined => {
    const units = known[id]
    return units === undefined ? undefined : { usd: { units, places: 8 }, source: 'feed' }
  }

const amounts = fc.bigInt({ min: 1n, max: 10n ** 30n })
const fees = fc.array(
  fc.record({
    name: fc.constantFrom('Relayer fee', 'LIFI Fixed Fee', 'Network fee', ''),
    token: fc.constantFrom(DAI, USDC, OLD, ETH),
    amount: fc.bigInt({ min: 0n, max: 10n ** 25n }),
  }),
  { maxLength: 5 },
)

const chainIdOf = ({ chain }: Token) => (chain === 'BASE' ? 8453 : 1)
const feeOf = (token: Token, amount: bigint, included: boolean, name = 'fee'): LifiFee => ({
  name,
  chainId: chainIdOf(token),
  ...(token.address === undefined ? {} : { address: token.address }),
  amount,
  included,
})
const quoteOf = (given: Partial<LifiQuote> & { value?: bigint }): LifiQuote => ({
  fromAmount: 100n,
  toAmount: 100n,
  guaranteed: 100n,
  approvalReset: false,
  fees: [],
  durationSeconds: 1,
  tool: 'across',
  transaction: { to: address('1'), data: '0x', value: given.value ?? 0n, gasLimit: 1n },
  ...given,
})
const questionOf = (source: Token) => ({ source, destination: USDC }) as LifiQuestion

/** Exact: numerator over a common denominator of 10^-`places`. */
const scaled = ({ units, places }: Decimal) => units * 10n ** BigInt(80 - places)

describe('the cost of a cross-chain payment', () => {
  it.each([DAI, ETH])('and what arrives add up exactly to what leaves the wallet, from $symbol', (source) => {
    fc.assert(
      fc.property(prices, amounts, amounts, fees, (known, fromAmount, toAmount, included) => {
        const priceOf = priceIn(known)
        const quote = quoteOf({
          fromAmount,
          toAmount,
          fees: included.map(({ name, token, amount }) => feeOf(token, amount, true, name)),
          value: source.address === undefined ? fromAmount : 0n,
        })
        const { costs, lossUsd } = costOfBridging(questionOf(source), quote, {
          provider: 'lifi',
          chains,
          tokens,
          priceOf,
        })
        const left = [usdOf(fromAmount, source, priceOf(source))]
        const arrived = [
          ...costs.map(({ token, amount }) => usdOf(amount, token, priceOf(token))),
          lossUsd,
          usdOf(toAmount, USDC, priceOf(USDC)),
        ]
        const sum = (all: Decimal[]) => all.reduce((total, each) => total + scaled(each), 0n)
        expect(sum(arrived)).toBe(sum(left))
        expect(costs.every(({ amount }) => amount > 0n)).toBe(true)
        expect(costs.every(({ token }) => token.id !== OLD.id)).toBe(true)
        const { lines, feeAmount, unpriced } = breakDownCosts(costs, USDC, priceOf)
        const reported = lines.map((line) => parseDecimal(line.amountInFeeCurrency ?? '') as Decimal)
        expect(unpriced).toBeUndefined()
        expect(sum(reported)).toBe(scaled(feeAmount))
      }),
      { numRuns: 1_000 },
    )
  })

  it('names who takes each fee, and where', () => {
    const quote = quoteOf({
      fees: ['Relayer fee', 'LIFI Fixed Fee', 'Destination gas'].map((name) => feeOf(DAI, 1n, true, name)),
    })
    const priceOf = priceIn({ [DAI.id]: 1n, [USDC.id]: 1n, [ETH.id]: 1n })
    const { costs } = costOfBridging(questionOf(DAI), quote, { provider: 'lifi', chains, tokens, priceOf })
    expect(costs.map(({ type, stage, provider, token }) => [type, stage, provider, token.id])).toEqual([
      ['CROSSCHAIN', 'PROXYING', 'across', 'DAI-ETHEREUM'],
      ['PROTOCOL', 'SENDING', 'lifi', 'DAI-ETHEREUM'],
      ['GAS', 'RECEIVING', undefined, 'DAI-ETHEREUM'],
    ])
  })

  it.each([
    ['a token that nothing pulls', DAI],
    ['the coin of the chain', ETH],
    ['the coin of the other chain', get('ETH-BASE')],
  ])('is refused with a fee that is not included, in %s', (_, token) => {
    const priceOf = priceIn({ [DAI.id]: 1n, [USDC.id]: 1n, [ETH.id]: 1n })
    const quote = quoteOf({ fees: [feeOf(token, 1n, false)] })
    const cost = () => costOfBridging(questionOf(DAI), quote, { provider: 'lifi', chains, tokens, priceOf })
    expect(cost).toThrow(RejectedQuoteError)
  })
})

describe('the price impact', () => {
  const usd = (units: bigint): Decimal => ({ units, places: 2 })

  it('is the loss over what the payee receives, rounded half-even to 8 places', () => {
    const received = fc.bigInt({ min: 1_000n, max: 10n ** 12n })
    fc.assert(
      fc.property(received, fc.integer({ min: -49, max: 499 }), (payee, thousandths) => {
        const loss = (payee * BigInt(thousandths)) / 1_000n
        const { units, places } = priceImpactOf(usd(loss), usd(payee))
        // Twice the distance to the exact ratio, in units of 10^-8, is at most one.
        const twice = 2n * (loss * 10n ** 8n - units * payee)
        expect(places).toBe(8)
        expect(twice <= payee && -twice <= payee).toBe(true)
      }),
      { numRuns: 1_000 },
    )
  })

  it.each([
    [51n, 100n],
    [900n, 100n],
    [-6n, 100n],
  ])('is refused where it is absurd: a loss of %s on %s', (loss, payee) => {
    expect(() => priceImpactOf(usd(loss), usd(payee))).toThrow(RejectedQuoteError)
  })
})

describe('the cap on the loss', () => {
  const USD = 10n ** 8n
  const priceOf = priceIn({ [DAI.id]: USD, [USDC.id]: USD, [ETH.id]: 3_000n * USD })
  const known = { provider: 'lifi', chains, tokens, priceOf }
  const dai = (cents: number) => BigInt(cents) * 10n ** 16n
  const usdc = (cents: number) => BigInt(cents) * 10n ** 4n
  const quoteFrom = (leaves: number, arrives: number, more: Partial<LifiQuote> = {}) =>
    quoteOf({ fromAmount: dai(leaves), toAmount: usdc(arrives), guaranteed: usdc(arrives), ...more })
  const judge = (quote: LifiQuote, cap = USUAL_LOSS_CAP, needed = quote.guaranteed) => {
    const request = { toAmount: `${needed}` } as LifiQuestion['request']
    checkLoss({ ...questionOf(DAI), request }, quote, known, cap)
  }

  it.each<[string, LifiQuote]>([
    ['8 dollars of a small payment', quoteFrom(10_00, 2_00)],
    ['10 % of a large one', quoteFrom(1_100_00, 1_000_00)],
    ['a declared fee of 4 dollars, counted twice', quoteFrom(24_00, 20_00, { fees: [feeOf(DAI, dai(4_00), true)] })],
    ['5 % less than by the feeds', quoteFrom(95_00, 100_00)],
  ])('accepts %s', (_, quote) => {
    expect(() => judge(quote)).not.toThrow()
  })

  it.each<[string, LifiQuote, string]>([
    ['a cent more than 8 dollars', quoteFrom(10_01, 2_00), '$8.01 would be lost, more than $8'],
    ['a cent more than 10 %', quoteFrom(1_100_01, 1_000_00), '$100.01 would be lost, more than $100'],
    [
      'a declared fee of 9 %',
      quoteFrom(1_090_00, 1_000_00, { fees: [feeOf(DAI, dai(90_00), true)] }),
      '$180 would be lost',
    ],
    [
      'a fee on top in coins',
      quoteFrom(100_00, 100_00, { fees: [feeOf(ETH, 10n ** 18n, false)] }),
      '$3000 would be lost',
    ],
    ['a fee of unknown price', quoteFrom(100_00, 100_00, { fees: [feeOf(OLD, 1n, true)] }), 'unknown price'],
  ])('rejects %s', (_, quote, detail) => {
    const expected = { check: 'COST_TOO_HIGH', message: expect.stringContaining(detail) }
    expect(() => judge(quote)).toThrow(expect.objectContaining(expected))
  })

  it('counts a surplus as lost', () => {
    const quote = quoteFrom(1_600_00, 1_500_00)
    expect(() => judge(quote)).not.toThrow()
    expect(() => judge(quote, USUAL_LOSS_CAP, usdc(100_00))).toThrow('$1500 would be lost, more than $10')
  })

  it('rejects a promise that no relayer would keep', () => {
    expect(() => judge(quoteFrom(94_00, 100_00))).toThrow('far more than the market')
  })

  it('is the larger of the two configured', () => {
    const cap = { bps: 200, usd: { units: 5n, places: 1 } }
    expect(() => judge(quoteFrom(10_50, 10_00), cap)).not.toThrow()
    expect(() => judge(quoteFrom(10_51, 10_00), cap)).toThrow('more than $0.5')
    expect(() => judge(quoteFrom(102_00, 100_00), cap)).not.toThrow()
    expect(() => judge(quoteFrom(102_01, 100_00), cap)).toThrow('more than $2')
  })
})
