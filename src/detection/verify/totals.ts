import { addDecimals, type Decimal, formatDecimal, readStoredDecimal, ZERO } from '../../domain/decimal.ts'
import type { VerifyTotal } from './verify-report.ts'

/** Sums by account and currency. */
export type Totals = ReadonlyMap<string, Total>

interface Total extends Omit<VerifyTotal, 'paid' | 'refunded'> {
  readonly paid: Decimal
  readonly refunded: Decimal
}

export const NO_TOTALS: Totals = new Map()

/** A payment or a refund, with its decimal amount. */
export interface CountedAmount extends Pick<Total, 'account' | 'currency'> {
  readonly kind: 'PAYMENT' | 'REFUND'
  readonly amount: string
}

export function addAmounts(totals: Totals, counted: readonly CountedAmount[]): Totals {
  const sums = new Map(totals)
  for (const { account, currency, kind, amount } of counted) {
    const key = `${account} ${currency}`
    const sum = sums.get(key) ?? { account, currency, payments: 0, paid: ZERO, refunds: 0, refunded: ZERO }
    const value = readStoredDecimal(amount)
    const added =
      kind === 'PAYMENT'
        ? { payments: sum.payments + 1, paid: addDecimals(sum.paid, value) }
        : { refunds: sum.refunds + 1, refunded: addDecimals(sum.refunded, value) }
    sums.set(key, { ...sum, ...added })
  }
  return sums
}

/** Sorted by account and currency. */
export function listTotals(totals: Totals): VerifyTotal[] {
  const sorted = [...totals].toSorted(([a], [b]) => (a < b ? -1 : 1))
  return sorted.map(([, total]) => ({
    ...total,
    paid: formatDecimal(total.paid),
    refunded: formatDecimal(total.refunded),
  }))
}
