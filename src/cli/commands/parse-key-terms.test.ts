import { describe, expect, it } from 'vitest'
import { expiryOf, parseDuration } from './keys-command.ts'

const NOW = new Date('2026-03-01T12:00:00.000Z')

it.each([
  ['90d', '2026-05-30T12:00:00.000Z'],
  ['30m', '2026-03-01T12:30:00.000Z'],
  ['2w', '2026-03-15T12:00:00.000Z'],
  ['2026-03-01', '2026-03-01'],
  ['0d', '0d'],
  ['99999999w', '99999999w'],
])('--expires %s is %s', (text, expected) => {
  expect(expiryOf(text, NOW)).toBe(expected)
})

describe('a duration', () => {
  it.each([
    ['0h', 0],
    ['24h', 86_400_000],
  ])('%s is %i ms', (text, expected) => {
    expect(parseDuration('overlap', text)).toBe(expected)
  })

  it('that is not valid is refused with the name of its option', () => {
    expect(() => parseDuration('overlap', '1 day')).toThrow('--overlap "1 day" is not a duration')
  })
})
