import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { recordLogs } from '../../../test/support/logs.ts'
import { createRefusalLog } from './log-calls.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

it('writes one line a minute for each caller and reason, and says how many it left out', () => {
  const logs = recordLogs()
  const log = createRefusalLog(logs)
  const refuse = (name: string, reason: string) => log.once(name, reason, () => logs.info({ name, reason }, 'refused'))
  for (let n = 0; n < 100; n++) for (const name of ['a', 'b']) for (const reason of ['X', 'Y']) refuse(name, reason)
  expect(logs.records).toHaveLength(4)
  vi.advanceTimersByTime(60_000)
  expect(logs.records.slice(4)).toMatchObject([{ level: 'info', fields: { refusals: 396 } }])
  refuse('a', 'X')
  expect(logs.records).toHaveLength(6)
})

it('writes a thousand lines a minute of single mistakes', () => {
  const logs = recordLogs()
  const log = createRefusalLog(logs)
  for (let n = 0; n < 1_500; n++) log.each(() => logs.info({ n }, 'refused'))
  expect(logs.records).toHaveLength(1_000)
  for (let n = 0; n < 50_000; n++) log.once(String(n), 'X', () => logs.info({ n }, 'refused'))
  expect(logs.records).toHaveLength(1_000)
  vi.advanceTimersByTime(60_000)
  expect(logs.records.slice(1_000)).toMatchObject([{ fields: { refusals: 50_500 } }])
})
