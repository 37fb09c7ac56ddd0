import type { PaymentRequestSummary } from '@waybill/client'
import { addDecimals } from '../parts/decimals.ts'

/** What is left of the requests of one invoice currency. */
export type OwedGroup = Pick<
  PaymentRequestSummary['groups'][number],
  'symbol' | 'network' | 'count' | 'outstandingAmount'
>

/** What is outstanding in one currency, on whatever chain. */
export type OutstandingSum = ReturnType<typeof sumOutstanding>[number]

/**
 * What is outstanding, by the symbol of the currency: exact.
 *
 * @returns the currencies with most requests first
 */
export function sumOutstanding(groups: readonly OwedGroup[]) {
  return [...Map.groupBy(groups, ({ symbol }) => symbol)]
    .map(([symbol, ofSymbol]) => ({
      /** `USDC`, `EUR` */
      symbol,
      amount: addDecimals(ofSymbol.map(({ outstandingAmount }) => outstandingAmount)),
      requests: ofSymbol.reduce((sum, { count }) => sum + count, 0),
      /** The same by chain; one part without a chain for fiat. */
      parts: ofSymbol
        .map(({ network, outstandingAmount }) => ({ network, amount: outstandingAmount }))
        .toSorted((a, b) => ((a.network ?? '') < (b.network ?? '') ? -1 : 1)),
    }))
    .toSorted((a, b) => b.requests - a.requests || (a.symbol < b.symbol ? -1 : 1))
}
