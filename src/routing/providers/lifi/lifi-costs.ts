import type { ChainDirectory } from '../../../chains/chain-directory.ts'
import type { TokenDirectory } from '../../../chains/token-directory.ts'
import type { Token } from '../../../domain/currency.ts'
import {
  addDecimals,
  compareDecimals,
  type Decimal,
  divideDecimals,
  formatDecimal,
  rescale,
  subtractDecimals,
  sumDecimals,
  ZERO,
} from '../../../domain/decimal.ts'
import type { CostLine } from '../../plans/costs.ts'
import type { Price } from '../../scan/wallet-state.ts'
import { ensure, type LifiQuestion } from './lifi-question.ts'
import type { LifiFee, LifiQuote } from './lifi-quote.ts'

interface Known {
  readonly provider: string
  readonly chains: ChainDirectory
  readonly tokens: TokenDirectory
  readonly priceOf: (token: Token) => Price | undefined
}

/**
 * Splits what a quote takes into two disjoint parts. Every fee must be `included`, a part of `fromAmount`, since the transaction sends nothing beyond it. A fee in a
 * token of unknown price gets no line, so it stays in the loss.
 *
 * @returns `lossUsd`: US dollars that are in no line of `costs` and reach nobody; below 0 where more comes out than went in
 * @throws RejectedQuoteError where a fee is not included
 */
export function costOfBridging({ source, destination }: LifiQuestion, quote: LifiQuote, known: Known) {
  const isPaid = quote.fees.every(({ included, amount }) => included || amount === 0n)
  ensure(isPaid, 'INCONSISTENT', 'it declares a fee that its transaction does not send')
  const fees = quote.fees.map((fee) => ({ fee, token: tokenOf(fee, known) }))
  const included = fees.flatMap(({ fee, token }) => {
    const price = token && known.priceOf(token)
    if (fee.amount === 0n || token === undefined || price === undefined) return []
    return [{ line: lineOf(fee, token, quote, known), usd: usdOf(fee.amount, token, price) }]
  })
  const out = usdOf(quote.toAmount, destination, known.priceOf(destination))
  const explained = sumDecimals([out, ...included.map(({ usd }) => usd)])
  return {
    costs: included.map(({ line }) => line),
    lossUsd: subtractDecimals(usdOf(quote.fromAmount, source, known.priceOf(source)), explained),
  }
}

function tokenOf({ chainId, address }: LifiFee, { chains, tokens }: Known): Token | undefined {
  const chain = chains.configured.find((each) => each.chainId === chainId)
  if (chain === undefined) return undefined
  return address === undefined ? tokens.native(chain.name) : tokens.byAddress(chain.name, address)
}

/** The fee of LI.FI itself or of its integrator. */
const OF_PROTOCOL = /li\.?fi|integrator/i
/** The destination's gas, which a relayer pays and charges for. */
const OF_GAS = /gas|network/i
const TOOL = /^[\w.-]{1,64}$/

function lineOf(
  fee: Pick<LifiFee, 'name' | 'amount'>,
  token: Token,
  { tool }: LifiQuote,
  { provider }: Known,
): CostLine {
  const { name, amount } = fee
  if (OF_GAS.test(name)) return { type: 'GAS', stage: 'RECEIVING', token, amount }
  if (OF_PROTOCOL.test(name)) return { type: 'PROTOCOL', stage: 'SENDING', provider, token, amount }
  return { type: 'CROSSCHAIN', stage: 'PROXYING', provider: TOOL.test(tool) ? tool : provider, token, amount }
}

/** The exact worth of an amount. @param price - always known here: no quote is asked for without it */
export function usdOf(amount: bigint, token: Token, price: Price | undefined): Decimal {
  if (price === undefined) throw new TypeError(`${token.id} has no price`)
  return { units: amount * price.usd.units, places: token.decimals + price.usd.places }
}

const IMPACT_PLACES = 8

/** A loss beside the fees outside these bounds, as a fraction of what the payee receives, means a wrong quote. */
const MAX_LOSS: Decimal = { units: 5n, places: 1 }
const MAX_GAIN: Decimal = { units: -5n, places: 2 }

/**
 * The loss as a fraction of what the payee receives, rounded half-even to 8 places.
 *
 * @throws RejectedQuoteError where it is absurd
 */
export function priceImpactOf(lossUsd: Decimal, receivedUsd: Decimal): Decimal {
  const impact = receivedUsd.units === 0n ? ZERO : divideDecimals(lossUsd, receivedUsd, IMPACT_PLACES)
  ensure(compareDecimals(impact, MAX_LOSS) <= 0, 'INCONSISTENT', 'it takes far more than the market would')
  ensure(compareDecimals(impact, MAX_GAIN) >= 0, 'INCONSISTENT', 'it takes far less than the market would')
  return impact
}

/** The most that a payment may lose on its way: the larger of the two. */
export interface LossCap {
  /** Hundredths of a percent of the amount that the payment needs on the destination chain. */
  readonly bps: number
  /** US dollars. */
  readonly usd: Decimal
}

export const USUAL_LOSS_CAP: LossCap = { bps: 1_000, usd: { units: 8n, places: 0 } }

/** No relayer would deliver a deposit that promises a larger gain. */
const MAX_GAIN_BPS = 500

/**
 * Caps the loss: what leaves the wallet less what the payment needs, at the feeds' prices. Declared fees are added in full, since only the
 * provider claims that they are a part of what leaves. What is guaranteed beyond the need counts as lost; otherwise a large surplus would make
 * space for a large loss.
 *
 * @throws RejectedQuoteError where the loss is above the cap, or cannot be priced
 */
export function checkLoss(
  { source, destination, request }: LifiQuestion,
  quote: LifiQuote,
  known: Known,
  cap: LossCap,
): void {
  const price = known.priceOf(destination)
  const needed = usdOf(BigInt(request.toAmount), destination, price)
  const arrives = usdOf(quote.guaranteed, destination, price)
  const leaves = usdOf(quote.fromAmount, source, known.priceOf(source))
  const declared = sumDecimals(quote.fees.map((fee) => declaredUsd(fee, known)))
  const loss = subtractDecimals(addDecimals(leaves, declared), needed)
  const share = shareOf(needed, cap.bps)
  const maxLoss = compareDecimals(share, cap.usd) > 0 ? share : cap.usd
  const inDollars = (usd: Decimal) => `$${formatDecimal(rescale(usd, 2))}`
  const isDear = compareDecimals(loss, maxLoss) > 0
  ensure(!isDear, 'COST_TOO_HIGH', `${inDollars(loss)} would be lost, more than ${inDollars(maxLoss)}`)
  const isGift = compareDecimals(addDecimals(leaves, shareOf(arrives, MAX_GAIN_BPS)), arrives) < 0
  ensure(!isGift, 'INCONSISTENT', 'it promises far more than the market would')
}

function declaredUsd(fee: LifiFee, known: Known): Decimal {
  if (fee.amount === 0n) return ZERO
  const token = tokenOf(fee, known)
  const price = token && known.priceOf(token)
  ensure(price !== undefined, 'COST_TOO_HIGH', 'it declares a fee in a token of unknown price')
  return usdOf(fee.amount, token as Token, price)
}

function shareOf({ units, places }: Decimal, bps: number): Decimal {
  return { units: units * BigInt(bps), places: places + 4 }
}
