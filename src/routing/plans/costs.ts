import type { Token } from '../../domain/currency.ts'
import {
  type Decimal,
  divideDecimals,
  formatAmount,
  formatDecimal,
  MAX_DECIMAL_PLACES,
  rescale,
  sumDecimals,
  ZERO,
} from '../../domain/decimal.ts'
import type { FeeStage, FeeType } from '../../domain/payment.ts'
import type { RouteFeeLine } from '../../domain/route.ts'
import type { Price } from '../scan/wallet-state.ts'

/** One cost, in base units of its own token. */
export interface CostLine {
  readonly type: FeeType
  readonly stage: FeeStage
  readonly provider?: string
  readonly token: Token
  readonly amount: bigint
}

/**
 * Counts costs in one currency. Each line is rounded half-even to 18 places and the rounded lines are added, so the sum is exact to the last
 * digit. A line of unknown price is listed with its own amount alone, and is not counted.
 *
 * @param priceOf - of one unit, in US dollars
 */
export function breakDownCosts(
  costs: readonly CostLine[],
  feeCurrency: Token,
  priceOf: (token: Token) => Price | undefined,
) {
  const counted = costs.map((cost) => countCost(cost, feeCurrency, priceOf))
  const inFeeCurrency = counted.filter((line) => line.inFeeCurrency !== undefined)
  const uncounted = counted.find((line) => line.inFeeCurrency === undefined)
  const feeInUsd = sumDecimals(inFeeCurrency.map((line) => line.inUsd ?? ZERO))
  const unpriced = uncounted && (priceOf(uncounted.cost.token) === undefined ? uncounted.cost.token : feeCurrency)
  return {
    lines: counted.map(toFeeLine),
    /** Exactly the sum of the lines' `amountInFeeCurrency`. */
    feeAmount: sumDecimals(inFeeCurrency.map((line) => line.inFeeCurrency ?? ZERO)),
    /** Exactly the sum of the counted lines' `amountInUsd`; undefined when the fee currency has no price. */
    feeInUsd: priceOf(feeCurrency) === undefined ? undefined : feeInUsd,
    /** A token without a price, because of which a line is not counted. */
    unpriced,
  }
}

function countCost(cost: CostLine, feeCurrency: Token, priceOf: (token: Token) => Price | undefined) {
  const amount: Decimal = { units: cost.amount, places: cost.token.decimals }
  const price = priceOf(cost.token)
  const exactUsd = price && { units: amount.units * price.usd.units, places: amount.places + price.usd.places }
  return {
    cost,
    inFeeCurrency: cost.token.id === feeCurrency.id ? amount : inCurrency(exactUsd, priceOf(feeCurrency)),
    inUsd: exactUsd && rescale(exactUsd, MAX_DECIMAL_PLACES),
  }
}

function inCurrency(exactUsd: Decimal | undefined, price: Price | undefined): Decimal | undefined {
  if (exactUsd === undefined || price === undefined) return undefined
  return divideDecimals(exactUsd, price.usd, MAX_DECIMAL_PLACES)
}

function toFeeLine({ cost, inFeeCurrency, inUsd }: ReturnType<typeof countCost>): RouteFeeLine {
  return {
    type: cost.type,
    stage: cost.stage,
    provider: cost.provider,
    amount: formatAmount(cost.amount, cost.token.decimals),
    currency: cost.token.id,
    amountInFeeCurrency: inFeeCurrency && formatDecimal(inFeeCurrency),
    amountInUsd: inUsd && formatDecimal(inUsd),
  }
}

/** Places of `feeRate`, `price_impact` and `totalCost`. */
const RATIO_PLACES = 8

/**
 * A cost as a fraction of what the payee receives, rounded half-even to 8 places.
 *
 * @param received - above 0, in the same currency
 */
export function fractionOf(cost: Decimal, received: Decimal): Decimal {
  return divideDecimals(cost, received, RATIO_PLACES)
}
