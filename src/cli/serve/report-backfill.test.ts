import { PassThrough } from 'node:stream'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { reportBackfill } from './serve-chains.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const status = () => [
  {
    network: 'BASE',
    reachable: true,
    following: true,
    suspects: [],
    backfill: { from: 1, to: 100, done: 40, left: 60 },
  },
  { network: 'POLYGON', reachable: true, following: true, suspects: [] },
]

it.each([
  [
    'writes a line for each chain with old blocks to a terminal, until it is ended',
    true,
    'BASE: 40 of 100 old blocks read\n'.repeat(2),
  ],
  ['writes nothing to a file', false, ''],
])('%s', (_, isTTY, text) => {
  const stderr = Object.assign(new PassThrough(), { isTTY })
  const end = reportBackfill(stderr, status)
  vi.advanceTimersByTime(30_000)
  end()
  vi.advanceTimersByTime(30_000)
  expect(String(stderr.read() ?? '')).toBe(text)
})
