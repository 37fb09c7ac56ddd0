import { addDecimals, isAboveZero } from '../parts/decimals.ts'
import { type StatedRequest, statesOf } from './request-badges.tsx'

/** A request with what is left of it. */
export interface OwedRequest extends StatedRequest {
  readonly invoiceCurrency: string
  readonly outstandingAmount: string
}

/** What is outstanding in one currency, on whatever chain. */
export interface OutstandingSum {
  /** `USDC`, `EUR` */
  readonly symbol: string
  readonly amount: string
  readonly requests: number
  /** The same by chain; one part without a chain for fiat. */
  readonly parts: readonly { readonly network: string | undefined; readonly amount: string }[]
}

/**
 * What is outstanding, by currency: exact, and of requests alone that can still be paid.
 *
 * @returns the currencies with most requests first
 */
export function sumOutstanding(requests: readonly OwedRequest[], now: Date): readonly OutstandingSum[] {
  const owed = requests.filter((request) => isAboveZero(request.outstandingAmount) && isPayable(request, now))
  const bySymbol = Map.groupBy(owed, ({ invoiceCurrency }) => symbolOf(invoiceCurrency))
  return [...bySymbol]
    .map(([symbol, ofSymbol]) => ({
      symbol,
      amount: sum(ofSymbol),
      requests: ofSymbol.length,
      parts: [...Map.groupBy(ofSymbol, ({ invoiceCurrency }) => networkOf(invoiceCurrency))]
        .map(([network, ofNetwork]) => ({ network, amount: sum(ofNetwork) }))
        .toSorted((a, b) => ((a.network ?? '') < (b.network ?? '') ? -1 : 1)),
    }))
    .toSorted((a, b) => b.requests - a.requests || (a.symbol < b.symbol ? -1 : 1))
}

function isPayable(request: OwedRequest, now: Date): boolean {
  const [first] = statesOf(request, now)
  return first === 'OPEN' || first === 'PARTIALLY_PAID'
}

function sum(requests: readonly OwedRequest[]): string {
  return addDecimals(requests.map(({ outstandingAmount }) => outstandingAmount))
}

/** `USDC-BASE` → `USDC`; the symbol itself may hold a hyphen. */
function symbolOf(currency: string): string {
  const cut = currency.lastIndexOf('-')
  return cut === -1 ? currency : currency.slice(0, cut)
}

function networkOf(currency: string): string | undefined {
  const cut = currency.lastIndexOf('-')
  return cut === -1 ? undefined : currency.slice(cut + 1)
}
