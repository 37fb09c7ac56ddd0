import { expect, test } from 'vitest'
import { planOf } from './planned-rows.ts'

const scan = { 'Node Type': 'Index Scan', 'Plan Rows': 7, 'Total Cost': 8.5 }

test.each<[string, Parameters<typeof planOf>[0], number | undefined]>([
  ['of one server', { 'QUERY PLAN': [{ Plan: scan }] }, 7],
  [
    "of Citus is that of the account's worker",
    {
      'QUERY PLAN': [
        {
          Plan: {
            'Node Type': 'Custom Scan',
            'Plan Rows': 0,
            'Total Cost': 0,
            'Distributed Query': { Job: { Tasks: [{ 'Remote Plan': [[{ Plan: scan }]] }] } },
          },
        },
      ],
    },
    7,
  ],
  ['is missing without a row', undefined, undefined],
])('a plan %s', (_, row, rows) => {
  expect(planOf(row)?.['Plan Rows']).toBe(rows)
})
