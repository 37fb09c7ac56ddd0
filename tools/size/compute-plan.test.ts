import { describe, expect, test } from 'vitest'
import { computePlan, GIB, type PlanInput, type Range } from './compute-plan.ts'
import { readOptions } from './read-options.ts'

describe('a plan', () => {
  // By hand: payments = a day × 365 × years; rows 1,008 bytes, indexes 1,757 to 2,427, requests 1,141 + 147 bytes each; the log of changes
  // 7 days × (109 + 2,041); peak = mean × 5. Memory: with 90 hot days of 2,555 or 365, see `hot part` below. Workers: the largest of disk
  // × 1.4 ÷ (8,192 − 8 GiB), memory ÷ 96 GiB, and cores at half use ÷ 16.
  test.each([
    {
      of: 'a shop with 1,000 payments a day for a year',
      args: [1, 1_000, 1],
      payments: 365_000,
      peak: 0.0579,
      indexesGib: [0.597, 0.825],
      memoryGib: [0.147, 0.38],
      workers: [1, 1],
      shards: 0,
      processes: [2, 2],
    },
    {
      of: '1 million payments a day for 7 years',
      args: [5_000, 1_000_000, 7],
      payments: 2_555_000_000,
      peak: 57.9,
      indexesGib: [4_180.8, 5_775.1],
      memoryGib: [147.3, 1_116.8],
      workers: [2, 12],
      shards: 64,
      processes: [2, 3],
    },
    {
      of: 'ten billion payments',
      args: [50_000, 4_000_000, 6.85],
      payments: 10_001_000_000,
      peak: 231,
      indexesGib: [16_364.9, 22_605.4],
      memoryGib: [589.1, 4_393],
      workers: [7, 46],
      shards: 256,
      processes: [8, 11],
    },
  ])('of $of', ({ args, payments, peak, indexesGib, memoryGib, workers, shards, processes }) => {
    const plan = computePlan(inputOf(args))
    expect(plan.payments).toBe(payments)
    expect(plan.perSecond.peak).toBeCloseTo(peak, peak > 100 ? -1 : 1)
    expect(inGib(plan.disk.indexes)).toEqual(indexesGib.map(near))
    expect(inGib(plan.memory)).toEqual(memoryGib.map(near))
    expect([plan.workers.low, plan.workers.high]).toEqual(workers)
    expect(plan.shards).toBe(shards)
    expect([plan.processes.low, plan.processes.high]).toEqual(processes)
  })
})

test('the hot part is at most all rows and entries', () => {
  const { memory } = computePlan(inputOf([1, 1_000_000, 0.1]))
  expect(memory.low).toBe(36_500_000 * 1_757)
  expect(memory.high).toBe(36_500_000 * (2_427 + 1_008))
})

test('at the border one server is enough, beyond it is not', () => {
  const input = inputOf([100, 100_000, 5])
  const { oneServerUpTo } = computePlan(input)
  for (const [factor, workers] of [
    [0.99, 1],
    [1.01, 2],
  ] as const) {
    const paymentsPerDay = (oneServerUpTo.low * factor) / (5 * 365)
    expect(computePlan({ ...input, paymentsPerDay }).workers.high).toBe(workers)
  }
})

test('the cost of a payment is that of a month divided by its payments', () => {
  const free = computePlan({ ...inputOf([10, 10_000, 2]), priceCoreHour: 0, priceGibMonth: 0 })
  expect(free.costPerPayment).toEqual({ low: 0, high: 0 })
  const priced = computePlan({ ...inputOf([10, 10_000, 2]), priceCoreHour: 1, priceGibMonth: 0 })
  // a server and its standby of 16 cores each, and two processes, for 730 hours
  expect(priced.costPerMonth).toEqual({ low: 34 * 730, high: 34 * 730 })
  expect(priced.costPerPayment.low * 10_000 * (365 / 12)).toBeCloseTo(34 * 730, 6)
})

test('says what no number of machines solves', () => {
  expect(computePlan(inputOf([1, 1_000, 1])).warnings).toEqual([])
  const oneAccount = { ...inputOf([5_000, 1_000_000, 7]), largestAccountPercent: 30 }
  expect(computePlan(oneAccount).warnings).toEqual([expect.stringContaining('largest account needs 4 workers')])
  const burst = { ...inputOf([5_000, 1_000_000, 7]), largestAccountPercent: 1, peak: 1_000 }
  expect(computePlan(burst).warnings).toEqual([expect.stringContaining('2619 payments a second')])
})

function inputOf([accounts, paymentsPerDay, years]: readonly number[]): PlanInput {
  const command = readOptions([`--accounts=${accounts}`, `--payments-per-day=${paymentsPerDay}`, `--years=${years}`])
  if (command.help) throw new Error('these options do not ask for help')
  return command.input
}

function inGib({ low, high }: Range): number[] {
  return [low / GIB, high / GIB]
}

function near(value: number): unknown {
  return expect.closeTo(value, value < 1 ? 3 : 0)
}
