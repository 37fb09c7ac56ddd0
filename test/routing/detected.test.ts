import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { formatAmount, parseAmount } from '../../src/domain/decimal.ts'
import type { PaymentRequest } from '../../src/domain/payment-request.ts'
import { takeRoute } from '../support/chains/take-route.ts'
import { freshAddress } from '../support/routing.ts'
import { type RouteStage, type Symbol, startRouteStage, USD } from './route-stage.ts'

const DIRECT = 'REQUEST_NETWORK_PAYMENT'

let stage: RouteStage
beforeAll(async () => {
  stage = await startRouteStage()
})
afterAll(() => stage?.stop())
beforeEach(async () => {
  const { chain, swapToPay } = stage
  for (const { feed } of Object.values(chain.tokens)) await chain.setFeed(feed, { answer: USD })
  await chain.setFeed(chain.native.feed, { answer: 3_000n * USD })
  await swapToPay.setFee(0n)
})

interface Case {
  readonly name: string
  /** The source token. */
  readonly from: Symbol
  /** The payment currency. */
  readonly to: Symbol
  readonly route: string
  readonly amount: string
  readonly fiat?: 'USD'
  readonly percentage?: string
  /** The fee of ERC20SwapToPay, in thousandths. */
  readonly swapFee?: bigint
}

const ways: readonly Case[] = [
  { name: 'a token', from: 'USDC', to: 'USDC', route: DIRECT, amount: '150.123456' },
  { name: 'coins', from: 'ETH', to: 'ETH', route: DIRECT, amount: '1.5' },
  { name: 'a converted amount of a token', from: 'DAI', to: 'DAI', route: DIRECT, amount: '150.12345678', fiat: 'USD' },
  { name: 'a converted amount of coins', from: 'ETH', to: 'ETH', route: DIRECT, amount: '150.12345678', fiat: 'USD' },
  { name: 'a swap on v2', from: 'DAI', to: 'USDC', route: 'ETHEREUM_ETHEREUM_DAI_USDC', amount: '150.123456' },
  {
    name: 'a swap on v3',
    from: 'USDT',
    to: 'USDC',
    route: 'ETHEREUM_ETHEREUM_USDT_USDC_UNISWAP_V3',
    amount: '150.123456',
  },
]
const large = { 'a swap on v2': '100000', 'a swap on v3': '100000' } as Record<string, string>
const cases: readonly Case[] = [
  ...ways,
  ...ways.map((way) => ({ ...way, name: `${way.name}, with a platform fee`, percentage: '1.5' })),
  ...ways
    .filter(({ name }) => name in large)
    .flatMap((way) => [
      { ...way, name: `${way.name}, which moves the market`, amount: large[way.name] ?? '' },
      {
        ...way,
        name: `${way.name}, which moves the market, with a platform fee`,
        amount: large[way.name] ?? '',
        percentage: '0.1',
      },
    ]),
  { ...(ways[4] as Case), name: 'a swap on v2, with both fees', percentage: '0.7', swapFee: 5n },
  { ...(ways[4] as Case), name: "a swap on v2, with the contract's fee", percentage: '0', swapFee: 5n },
]

const termsOf = ({ to, amount, fiat }: Case) => ({
  amount,
  paymentCurrency: `${to}-ETHEREUM`,
  invoiceCurrency: fiat ?? `${to}-ETHEREUM`,
})

describe('the payment detected from an executed route', () => {
  it.each(cases)('has the quoted amounts, which are those that moved: $name', async (way) => {
    const { from, to, route: id, percentage, fiat } = way
    await stage.swapToPay.setFee(way.swapFee ?? 0n)
    const { request, wallet } = await stage.arrange(from, termsOf(way))
    const feeAddress = freshAddress(`platform of ${way.name}`)
    const fee = percentage === undefined ? {} : { feePercentage: percentage, feeAddress }
    const prepared = await stage.prepare({ ...questionOf(request, wallet), ...fee, route: id })

    const holdings = async () => [
      await stage.holdings(from, wallet),
      await stage.holdings(to, request.payee),
      await stage.holdings(to, feeAddress),
    ]
    const before = await holdings()
    const taken = await takeRoute(stage.chain, wallet, prepared)
    const moved = (await holdings()).map((held, i) => held - (before[i] ?? 0n))
    const gas = from === 'ETH' ? taken.reduce((sum, { gasCost }) => sum + gasCost, 0n) : 0n
    const [spent, received, charged] = [-(moved[0] ?? 0n) - gas, moved[1] ?? 0n, moved[2] ?? 0n]
    expect(formatAmount(spent, stage.decimalsOf(from))).toBe(prepared.route.sourceAmount)

    const [payment, ...more] = await stage.detected(request)
    expect(more).toEqual([])
    const last = taken.at(-1)
    const receipt = await stage.chain.receipt(last?.transactionHash as `0x${string}`)
    expect(payment).toMatchObject({
      type: fiat === undefined ? 'DIRECT' : 'CONVERSION',
      status: 'PENDING',
      amount: formatAmount(received, stage.decimalsOf(to)),
      currency: `${to}-ETHEREUM`,
      token_address: to === 'ETH' ? null : expect.any(Buffer),
      invoice_amount: way.amount,
      invoice_currency: fiat ?? `${to}-ETHEREUM`,
      payer: wallet,
      initiator: wallet,
      payee: request.payee,
      network: 'ETHEREUM',
      source_network: 'ETHEREUM',
      chain_id: prepared.route.chainId,
      txHash: last?.transactionHash,
      block_number: receipt?.blockNumber,
      event_index: 0,
    })
    expect(payment.source_tx_hash).toEqual(payment.tx_hash)
    if (fiat === undefined) expect(payment.amount).toBe(way.amount)

    const quotedFees = (['PLATFORM', 'PROTOCOL'] as const).flatMap((type) => {
      const amount = prepared.route.feeBreakdown.find((line) => line.type === type)?.amount ?? '0'
      return amount === '0' ? [] : [{ type, amount, currency: `${to}-ETHEREUM`, receiverAddress: feeAddress }]
    })
    expect(payment.fees).toMatchObject(quotedFees)
    expect(
      quotedFees.reduce((sum, { amount }) => sum + (parseAmount(amount, stage.decimalsOf(to)) as bigint), 0n),
    ).toBe(charged)
    expect(payment.gas).toMatchObject({
      used: String(last?.gasUsed),
      amount: formatAmount(last?.gasCost ?? 0n, 18),
      currency: 'ETH-ETHEREUM',
    })
    const priced = fiat === undefined ? Number(payment.amount) * (to === 'ETH' ? 3_000 : 1) : Number(way.amount)
    expect(Number(payment.amount_in_usd)).toBeCloseTo(priced, 8)
  })

  it.each(ways)('covers the request once it is final: $name', async (way) => {
    const { request, wallet } = await stage.arrange(way.from, termsOf(way))
    await takeRoute(stage.chain, wallet, await stage.prepare({ ...questionOf(request, wallet), route: way.route }))
    await stage.chain.mine({ blocks: 4 })
    expect((await stage.detected(request)).map(({ status, final }) => [status, final])).toEqual([['CONFIRMED', true]])
    const again = { ...questionOf(request, wallet), route: way.route }
    await expect(stage.prepare(again)).rejects.toMatchObject({ reason: 'REQUEST_COVERED' })
  })
})

interface Move {
  readonly name: string
  /** Hundredths of a percent; below 0 is against the payer. */
  readonly bps: bigint
  readonly outcome: 'REVERTS' | 'SPENDS MORE' | 'SPENDS LESS'
}
const moves: readonly Move[] = [
  { name: 'far against the payer', bps: -250n, outcome: 'REVERTS' },
  { name: 'a little against the payer', bps: -50n, outcome: 'SPENDS MORE' },
  { name: 'for the payer', bps: 250n, outcome: 'SPENDS LESS' },
]
const moving = ways.slice(2).flatMap((way) => moves.map((move) => ({ way, move })))

/** Moves the price by about so much: by a trade on the exchange, or by the feed of a conversion. */
async function movePrice({ from, route, fiat }: Case, { bps }: Move): Promise<void> {
  const { chain } = stage
  if (fiat !== undefined) {
    const [feed, par] = from === 'ETH' ? [chain.native.feed, 3_000n * USD] : [chain.tokens.DAI.feed, USD]
    return chain.setFeed(feed, { answer: (par * (10_000n + bps)) / 10_000n })
  }
  const source = chain.tokens[from as 'DAI' | 'USDT']
  const [sold, bought] = bps < 0n ? [source, chain.tokens.USDC] : [chain.tokens.USDC, source]
  // A trade of one percent of a pool's reserve moves its price by two percent.
  const amount = (bps < 0n ? -bps : bps) * 50n * 10n ** BigInt(sold.decimals)
  await stage.trade(route.endsWith('V3') ? 'v3' : 'v2', amount, sold, bought)
}

describe('a price that moves between quote and execution', () => {
  it.each(moving)('of $way.name, $move.name: $move.outcome', async ({ way, move }) => {
    const { from, to } = way
    const { request, wallet } = await stage.arrange(from, termsOf(way))
    const prepared = await stage.prepare({ ...questionOf(request, wallet), route: way.route, slippage: '1' })
    const unitsOf = (amount: string) => parseAmount(amount, stage.decimalsOf(from)) as bigint
    const [quoted, most] = [unitsOf(prepared.route.sourceAmount), unitsOf(prepared.maxSourceAmount)]
    const approved = {
      transactions: prepared.transactions.filter((_, i) => prepared.steps[i]?.kind === 'APPROVE').slice(0, 1),
    }
    const rest = { transactions: prepared.transactions.slice(approved.transactions.length) }
    await takeRoute(stage.chain, wallet, approved)
    await movePrice(way, move)

    const before = await stage.holdings(from, wallet)
    if (move.outcome === 'REVERTS') {
      await expect(takeRoute(stage.chain, wallet, rest)).rejects.toThrow(/revert/)
      if (from !== 'ETH') expect(await stage.holdings(from, wallet)).toBe(before)
      expect(await stage.holdings(to, request.payee)).toBe(0n)
      expect(await stage.detected(request)).toEqual([])
      return
    }
    const taken = await takeRoute(stage.chain, wallet, rest)
    const gas = from === 'ETH' ? taken.reduce((sum, { gasCost }) => sum + gasCost, 0n) : 0n
    const spent = before - (await stage.holdings(from, wallet)) - gas
    expect(spent).toBeLessThanOrEqual(most)
    expect(spent > quoted ? 'SPENDS MORE' : 'SPENDS LESS').toBe(move.outcome)
    const [payment, ...more] = await stage.detected(request)
    expect(more).toEqual([])
    expect(payment).toMatchObject({ payer: wallet, invoice_amount: way.amount })
    expect(payment.amount).toBe(formatAmount(await stage.holdings(to, request.payee), stage.decimalsOf(to)))
  })
})

function questionOf({ paymentReference }: PaymentRequest, wallet: string) {
  return { paymentReference, wallet }
}
