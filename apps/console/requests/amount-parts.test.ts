import { expect, it } from 'vitest'
import { partsOf } from './amounts-bar.tsx'

it.each([
  [
    ['120', '0', '180', '0'],
    ['120', '0', '180', '0'],
  ],
  [
    ['130', '0', '0', '30'],
    ['100', '0', '0', '30'],
  ],
  [
    ['100', '50', '0', '30'],
    ['100', '20', '0', '30'],
  ],
  [
    ['100', '50', '0', '70'],
    ['80', '0', '0', '70'],
  ],
  [
    ['0', '0', '0.000001', '0'],
    ['0', '0', '0.000001', '0'],
  ],
])('lays %s side by side as %s', ([paid, pending, outstanding, overpaid], amounts) => {
  const parts = partsOf({
    paidAmount: paid!,
    pendingAmount: pending!,
    outstandingAmount: outstanding!,
    overpaidAmount: overpaid!,
  })
  expect(parts.map(({ amount }) => amount)).toEqual(amounts)
})
