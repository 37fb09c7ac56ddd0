import { describe, expect, it } from 'vitest'
import { UsageError } from '../shared/command.ts'
import { parseDuration, parseExpiry, parseOrigins, parseRate } from './keys-command.ts'

const NOW = new Date('2026-03-01T12:00:00.000Z')

describe('the expiry of a key', () => {
  it.each([
    ['90d', '2026-05-30T12:00:00.000Z'],
    ['30m', '2026-03-01T12:30:00.000Z'],
    ['2w', '2026-03-15T12:00:00.000Z'],
    ['2026-03-01', '2026-03-01T23:59:59.999Z'],
    ['2027-01-01T00:00:00+01:00', '2026-12-31T23:00:00.000Z'],
  ])('%s is %s', (text, expected) => {
    expect(parseExpiry(text)(NOW).toISOString()).toBe(expected)
  })

  it.each([
    '',
    '0d',
    '90',
    '90 d',
    '-1d',
    '1y',
    '99999999w',
    '2026-02-29',
    '2026-02-28',
    '2026-03-01T12:00:00Z',
    '2027',
  ])('"%s" is refused', (text) => {
    expect(() => parseExpiry(text)(NOW)).toThrow(UsageError)
  })
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

describe('a rate', () => {
  it.each([
    ['0', 0],
    ['300', 300],
    ['1000000', 1_000_000],
  ])('%s is %i', (text, expected) => {
    expect(parseRate(text)).toBe(expected)
  })

  it.each(['', '-1', '1.5', '1e3', '1000001', 'many'])('"%s" is refused', (text) => {
    expect(() => parseRate(text)).toThrow(UsageError)
  })
})

describe('parseOrigins', () => {
  it('reads exact origins, each once', () => {
    expect(parseOrigins('https://shop.example, http://localhost:5173,https://shop.example')).toEqual([
      'https://shop.example',
      'http://localhost:5173',
    ])
  })

  it.each([
    [undefined, '--origins is missing'],
    ['', '--origins is missing'],
    [' , ', '--origins is missing'],
    ['shop.example', 'use scheme://host:port'],
    ['https://shop.example/', 'use https://shop.example'],
    ['https://shop.example/pay?a=b', 'use https://shop.example'],
    ['https://SHOP.example', 'use https://shop.example'],
    ['https://shop.example:443', 'use https://shop.example'],
    ['https://user@shop.example', 'use https://shop.example'],
    ['https://*.shop.example', 'a pattern is no origin'],
    ['*', 'use scheme://host:port'],
    ['null', 'use scheme://host:port'],
    ['file:///pay.html', 'use scheme://host:port'],
    ['chrome-extension://abc', 'use scheme://host:port'],
    [`https://${'a'.repeat(300)}.example`, 'use scheme://host:port'],
    [Array.from({ length: 101 }, (_, n) => `https://s${n}.example`).join(), 'at most 100'],
  ])('refuses %j', (text, message) => {
    expect(() => parseOrigins(text)).toThrow(message)
  })
})
