import { addDecimals, type Decimal, formatDecimal, readStoredDecimal, ZERO } from '../../domain/decimal.ts'
import type { VerifyTotal } from './verify-report.ts'

/** Sums by account and currency. */
export type Totals = ReadonlyMap<string, Total>

interface Total {
  readonly account: string
  readonly currency: string
  readonly payments: number
  readonly paid: Decimal
  readonly refunds: number
  readonly refunded: Decimal
}

export const NO_TOTALS: Totals = new Map()

/** Adds a payment or a refund. */
export function withAmount(
  totals: Totals,
  { account, currency, kind, amount }: Pick<Total, 'account' | 'currency'> & CountedAmount,
): Totals {
  const none = { account, currency, payments: 0, paid: ZERO, refunds: 0, refunded: ZERO }
  const sum = readStoredDecimal(amount)
  const one = kind === 'PAYMENT' ? { ...none, payments: 1, paid: sum } : { ...none, refunds: 1, refunded: sum }
  return addTotals(totals, new Map([[`${account} ${currency}`, one]]))
}

interface CountedAmount {
  readonly kind: 'PAYMENT' | 'REFUND'
  readonly amount: string
}

export function addTotals(a: Totals, b: Totals): Totals {
  const sum = new Map(a)
  for (const [key, more] of b) {
    const before = sum.get(key)
    if (before === undefined) {
      sum.set(key, more)
      continue
    }
    sum.set(key, {
      ...before,
      payments: before.payments + more.payments,
      paid: addDecimals(before.paid, more.paid),
      refunds: before.refunds + more.refunds,
      refunded: addDecimals(before.refunded, more.refunded),
    })
  }
  return sum
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
