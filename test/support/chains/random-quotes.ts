/** Quotes of all kinds with random terms, each executed exactly as prepared and compared with what was spent. */
import type { PrivateKeyAccount } from 'viem/accounts'
import { expect } from 'vitest'
import { formatAmount, parseAmount } from '../../../src/domain/decimal.ts'
import type { PreparedPayment, Route } from '../../../src/domain/route.ts'
import { canonical, createTestRouting, type TestRouting } from '../routing.ts'
import { type Mined, type PayersChain, type PayersToken, unusedAddress } from './payers-chain.ts'
import { quotedGas } from './take-route.ts'

const KINDS = ['DIRECT', 'NATIVE', 'CONVERSION', 'NATIVE_CONVERSION', 'SWAP_V2', 'SWAP_V3', 'FRESH_PAIR'] as const
type QuoteKind = (typeof KINDS)[number]

/** One quote that was taken. */
export interface TakenQuote {
  readonly kind: QuoteKind
  readonly reasons: readonly string[]
  /** By transaction, the part of its gas limit that it used; undefined where it had no limit. */
  readonly shares: readonly (number | undefined)[]
  /** The quoted gas divided by what was spent. */
  readonly gasLine: number
}

/** The quotes whose gas line is more than a quarter off. */
export function offTheLine(taken: readonly TakenQuote[]): readonly TakenQuote[] {
  return taken.filter(({ gasLine }) => gasLine < 0.75 || gasLine > 1.25)
}

/** Random numbers, the same for the same seed. @see https://en.wikipedia.org/wiki/Xorshift */
function randomOf(seed: number) {
  let state = seed | 1
  const next = () => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return (state >>> 0) / 2 ** 32
  }
  return { below: (count: number) => Math.floor(next() * count), chance: (share: number) => next() < share }
}
type Random = ReturnType<typeof randomOf>

interface Terms {
  readonly kind: QuoteKind
  /** What leaves the wallet; undefined for the coin. */
  readonly source: PayersToken | undefined
  readonly destination: PayersToken | undefined
  readonly isFiat: boolean
  readonly amount: string
  readonly percentage: string | undefined
}

/** Takes random quotes of all kinds one after the other; each fresh pair once. */
export async function takeRandomQuotes(
  chain: PayersChain,
  { count, seed, baseFee }: { count: number; seed: number /** Wei, held where the node lets one. */; baseFee?: bigint },
): Promise<TakenQuote[]> {
  const random = randomOf(seed)
  const routing = createTestRouting([chain.config])
  const fresh = [...chain.tokens.values()].filter(({ symbol }) => symbol.startsWith('FRESH'))
  const taken: TakenQuote[] = []
  for (let i = 0; i < count; i++) {
    const kind = KINDS[i % KINDS.length] as QuoteKind
    const terms = randomTerms(chain, kind === 'FRESH_PAIR' && fresh.length === 0 ? 'SWAP_V2' : kind, random, fresh)
    taken.push(await takeQuote(chain, routing, terms, { random, seed: `${seed} ${i}`, baseFee }))
  }
  return taken
}

function randomTerms(chain: PayersChain, kind: QuoteKind, random: Random, fresh: PayersToken[]): Terms {
  const any = (symbols: readonly string[]) => chain.token(symbols[random.below(symbols.length)] ?? '')
  const amountOf = (decimals: number, most: number) => {
    const whole = random.chance(0.1) ? 0 : random.below(most)
    const places = random.below(Math.min(decimals, 9) + 1)
    const rest = Array.from({ length: places }, () => random.below(10)).join('')
    return formatAmount(
      (parseAmount(rest === '' ? `${whole}` : `${whole}.${rest}`, decimals) ?? 0n) +
        10n ** BigInt(Math.max(0, decimals - 4)),
      decimals,
    )
  }
  const percentages = ['0', '0.25', '1.5', '12.345']
  const percentage = random.chance(0.5) ? percentages[random.below(percentages.length)] : undefined
  const usdc = chain.token('USDC')
  const common = { kind, percentage, isFiat: false }
  switch (kind) {
    case 'DIRECT': {
      const token = any(['USDC', 'USDT', 'DAI'])
      return { ...common, source: token, destination: token, amount: amountOf(token.decimals, 5_000) }
    }
    case 'NATIVE':
      return { ...common, source: undefined, destination: undefined, amount: amountOf(18, 2) }
    case 'CONVERSION': {
      const token = any(['USDC', 'USDT', 'DAI'])
      return { ...common, isFiat: true, source: token, destination: token, amount: amountOf(2, 3_000) }
    }
    case 'NATIVE_CONVERSION':
      return { ...common, isFiat: true, source: undefined, destination: undefined, amount: amountOf(2, 3_000) }
    case 'SWAP_V2':
      return { ...common, source: chain.token('DAI'), destination: usdc, amount: amountOf(6, 3_000) }
    case 'SWAP_V3':
      return { ...common, source: chain.token('USDT'), destination: usdc, amount: amountOf(6, 3_000) }
    case 'FRESH_PAIR':
      return { ...common, source: fresh.pop(), destination: usdc, amount: amountOf(6, 3_000) }
  }
}

const PLENTY = 1_000_000n

/** A wallet, a payee and a request by random terms: allowances and balances that are there already, receivers who hold something. */
async function arrange(chain: PayersChain, routing: TestRouting, terms: Terms, random: Random, seed: string) {
  const { source, destination, isFiat, amount, percentage } = terms
  const wallet = await chain.newWallet()
  const [payee, feeAddress] = [unusedAddress(`payee ${seed}`), unusedAddress(`platform ${seed}`)]
  const unit = (token: PayersToken) => 10n ** BigInt(token.decimals)
  if (source !== undefined) await chain.fund(source, wallet.address, PLENTY * unit(source))
  if (destination !== undefined) {
    for (const receiver of [payee, feeAddress]) {
      if (random.chance(0.5)) await chain.fund(destination, receiver, unit(destination))
    }
    if (destination === source && random.chance(0.3)) {
      await chain.approve(wallet, destination, chain.feeProxy, random.chance(0.5) ? 1n : PLENTY * unit(destination))
    }
    if (terms.kind === 'SWAP_V3' && random.chance(0.3)) await chain.fund(destination, wallet.address, 5n)
  }
  const paymentCurrency = `${destination?.symbol ?? 'ETH'}-ETHEREUM`
  const paymentReference = routing.addRequest({
    payee: canonical(payee),
    amount,
    network: 'ETHEREUM',
    invoiceCurrency: isFiat ? 'USD' : paymentCurrency,
    paymentCurrency,
  })
  const fee = percentage === undefined ? {} : { feePercentage: percentage, feeAddress }
  const question = {
    paymentReference,
    wallet: wallet.address,
    chain: 'ETHEREUM',
    token: source?.symbol ?? 'ETH',
    ...fee,
  }
  return { wallet, payee, feeAddress, question }
}

async function takeQuote(
  chain: PayersChain,
  routing: TestRouting,
  terms: Terms,
  { random, seed, baseFee }: { random: Random; seed: string; baseFee: bigint | undefined },
): Promise<TakenQuote> {
  const { source, destination } = terms
  const { wallet, payee, feeAddress, question } = await arrange(chain, routing, terms, random, seed)
  const holdings = async () => ({
    source: await chain.holding(wallet.address, source),
    payee: await chain.holding(payee, destination),
    platform: await chain.holding(feeAddress, destination),
  })
  if (baseFee !== undefined) await chain.node.setBaseFee(baseFee)
  const prepared = await routing.prepare(question)
  const before = await holdings()
  const mined = await takeAll(chain, wallet, prepared, baseFee)
  const after = await holdings()

  const { route } = prepared
  const gasCost = mined.reduce((sum, each) => sum + each.gasCost, 0n)
  const units = (text: string, token: PayersToken | undefined) => parseAmount(text, token?.decimals ?? 18) as bigint
  const spent = before.source - after.source - (source === undefined ? gasCost : 0n)
  const platform = units(amountOfLine(route, 'PLATFORM'), destination)
  const described = `${terms.kind} ${JSON.stringify(question)} of ${terms.amount}`
  const received = terms.isFiat ? spent - platform : units(terms.amount, destination)
  const moved = { spent, platform: after.platform - before.platform, received: after.payee - before.payee }
  expect({ described, ...moved }).toEqual({
    described,
    spent: units(route.sourceAmount, source),
    platform,
    received,
  })
  return {
    kind: terms.kind,
    reasons: prepared.warnings.map(({ reason }) => reason),
    shares: mined.map(({ gasUsed }, i) => {
      const limit = prepared.transactions[i]?.gas
      return limit === undefined ? undefined : Number(gasUsed) / Number(limit)
    }),
    gasLine: Number(quotedGas(route)) / Number(gasCost),
  }
}

async function takeAll(
  chain: PayersChain,
  wallet: PrivateKeyAccount,
  { transactions, steps }: PreparedPayment,
  baseFee: bigint | undefined,
): Promise<readonly Mined[]> {
  const mined: Mined[] = []
  for (const [i, transaction] of transactions.entries()) {
    if (baseFee !== undefined) await chain.node.setBaseFee(baseFee)
    const sent = await chain.send(wallet, transaction)
    const described = `${steps[i]?.kind} used ${sent.gasUsed} of ${BigInt(transaction.gas ?? 0)}`
    expect({ described, succeeded: sent.succeeded }).toEqual({ described, succeeded: true })
    mined.push(sent)
  }
  return mined
}

function amountOfLine({ feeBreakdown }: Route, type: string): string {
  return feeBreakdown.find((line) => line.type === type)?.amount ?? '0'
}
