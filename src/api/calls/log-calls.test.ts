import { expect, it } from 'vitest'
import { waybillError } from '../../errors/waybill-error.ts'
import { isLogged, type LoggedCalls } from './log-calls.ts'

const mistake = waybillError('MISSING_API_KEY', {})
const away = waybillError('DATABASE_UNAVAILABLE', {})
const fault = waybillError('INTERNAL', {})

it.each<[LoggedCalls, boolean, boolean, boolean]>([
  [1, true, true, true],
  [0, false, true, true],
  ['FAILED', false, true, true],
  ['NONE', false, false, true],
])('with %s, a call that succeeds has a line: %s; one refused: %s; one that this process failed: %s', (...row) => {
  const [logged, ...expected] = row
  const failed = [away, fault].every((error) => isLogged(logged, error, 'rest'))
  expect([isLogged(logged, undefined, 'rest'), isLogged(logged, mistake, 'grpc'), failed]).toEqual(expected)
})

it('writes the part of the calls that it is to', () => {
  const lines = Array.from({ length: 4_000 }, () => isLogged(0.25, undefined, 'rest')).filter(Boolean)
  expect(lines.length).toBeGreaterThan(800)
  expect(lines.length).toBeLessThan(1_200)
})
