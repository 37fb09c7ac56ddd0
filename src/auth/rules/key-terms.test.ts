import { describe, expect, it } from 'vitest'
import { explainBeyondLimits, explainBeyondScopes, type KeyInput, type KeyTerms, parseKeyTerms } from './key-terms.ts'

const NOW = new Date('2026-03-01T12:00:00.000Z')
const SECRET: KeyInput = { scopes: ['payments:read'] }
const PAGES: KeyInput = { origins: ['https://shop.example'] }

describe('the terms of a key', () => {
  it('have defaults', () => {
    expect(parseKeyTerms(SECRET, NOW)).toEqual({ scopes: ['payments:read'], callsPerMinute: 300 })
    const pages = { scopes: ['routes:read', 'requests:read'], callsPerMinute: 0, origins: PAGES.origins }
    expect(parseKeyTerms({ ...PAGES, scopes: [] }, NOW)).toEqual(pages)
  })

  it('are read as they are given, each scope and origin once', () => {
    const scopes = ['chains:read', 'payments:read', 'chains:read']
    const given = { scopes, rate: 0, share: '1.0', note: 'a', expiresAt: '2026-03-01' }
    expect(parseKeyTerms(given, NOW)).toEqual({
      scopes: ['chains:read', 'payments:read'],
      callsPerMinute: 0,
      share: 1,
      note: 'a',
      expiresAt: new Date('2026-03-01T23:59:59.999Z'),
    })
    const origins = ['https://shop.example', 'http://localhost:5173', 'https://shop.example']
    expect(parseKeyTerms({ origins }, NOW).origins).toEqual(origins.slice(0, 2))
  })

  it.each<[string, KeyInput, string, string]>([
    ['no scope', {}, 'scopes', 'MISSING_FIELD'],
    ['an unknown scope', { scopes: ['payments:reed'] }, 'scopes', 'UNKNOWN_ENUM_VALUE'],
    ['a scope in capitals', { scopes: ['PAYMENTS:READ'] }, 'scopes', 'UNKNOWN_ENUM_VALUE'],
    ['a name of all objects', { scopes: ['constructor'] }, 'scopes', 'UNKNOWN_ENUM_VALUE'],
    ['scopes that exclude each other', { scopes: ['operations:read', 'keys:write'] }, 'scopes', 'INVALID_FIELD'],
    ...[-1, 1.5, 1_000_001, Number.NaN, Infinity].map(
      (rate) =>
        [`a rate of ${rate}`, { ...SECRET, rate }, 'rate', 'INVALID_FIELD'] as [string, KeyInput, string, string],
    ),
    ...['', '0', '0.0', '1.1', '-0.1', '10', '10%', 'half', '1e-1', '0.00001', ' 0.1', 'NaN'].map(
      (share) =>
        [`a share of "${share}"`, { ...SECRET, share }, 'share', 'INVALID_FIELD'] as [string, KeyInput, string, string],
    ),
    ['an empty note', { ...SECRET, note: '' }, 'note', 'INVALID_FIELD'],
    ['a long note', { ...SECRET, note: 'x'.repeat(257) }, 'note', 'INVALID_FIELD'],
    ['a note of two lines', { ...SECRET, note: 'a\nb' }, 'note', 'INVALID_FIELD'],
    ['a note with half a character', { ...SECRET, note: '\ud800' }, 'note', 'INVALID_FIELD'],
    ['a day that is over', { ...SECRET, expiresAt: '2026-02-28' }, 'expiresAt', 'EXPIRY_PAST'],
    ['now', { ...SECRET, expiresAt: '2026-03-01T12:00:00Z' }, 'expiresAt', 'EXPIRY_PAST'],
    ...['', '90d', '2027', '2026-02-29', '2027-01-01T00:00:00'].map(
      (expiresAt) =>
        [`"${expiresAt}" as its end`, { ...SECRET, expiresAt }, 'expiresAt', 'INVALID_DATE'] as [
          string,
          KeyInput,
          string,
          string,
        ],
    ),
    ...[
      'shop.example',
      'https://shop.example/',
      'https://shop.example/pay?a=b',
      'https://SHOP.example',
      'https://shop.example:443',
      'https://user@shop.example',
      'https://*.shop.example',
      '*',
      'null',
      '',
      'file:///pay.html',
      'chrome-extension://abc',
      `https://${'a'.repeat(300)}.example`,
    ].map(
      (origin) =>
        [`the origin "${origin}"`, { origins: [origin] }, 'origins', 'INVALID_FIELD'] as [
          string,
          KeyInput,
          string,
          string,
        ],
    ),
    [
      '101 origins',
      { origins: Array.from({ length: 101 }, (_, n) => `https://s${n}.example`) },
      'origins',
      'INVALID_FIELD',
    ],
    ['scopes of pages', { ...PAGES, ...SECRET }, 'scopes', 'INVALID_FIELD'],
    ['a rate of pages', { ...PAGES, rate: 60 }, 'rate', 'INVALID_FIELD'],
    ['a share of pages', { ...PAGES, share: '0.1' }, 'share', 'INVALID_FIELD'],
    ['a shop of a secret key', { ...SECRET, name: 'Bay Books' }, 'name', 'INVALID_FIELD'],
    ['a logo of a secret key', { ...SECRET, logo: new Uint8Array() }, 'logo', 'INVALID_FIELD'],
    ['a colour of a secret key', { ...SECRET, color: '#0a7d4f' }, 'color', 'INVALID_FIELD'],
    ['corners of a secret key', { ...SECRET, cornerRadius: 0 }, 'cornerRadius', 'INVALID_FIELD'],
  ])('refuse %s', (_, input, field, reason) => {
    const violations = [expect.objectContaining({ field, reason })]
    expect(() => parseKeyTerms(input, NOW)).toThrow(expect.objectContaining({ violations }))
  })
})

describe('a key hands out', () => {
  const own: KeyTerms = {
    scopes: ['keys:write', 'payments:read', 'operations:read', 'accounts:any'],
    callsPerMinute: 60,
  }
  const beyondScopes = (scopes: KeyTerms['scopes'], isOwnAccount = true) =>
    explainBeyondScopes({ scopes, callsPerMinute: 60 }, own, isOwnAccount)
  const beyondLimits = (wanted: Partial<KeyTerms>, more: Partial<KeyTerms> = {}, isSelf = false) =>
    explainBeyondLimits({ scopes: [], callsPerMinute: 60, ...wanted }, { ...own, ...more }, isSelf)
  const at = (text: string) => ({ expiresAt: new Date(text) })

  it('only scopes that it has', () => {
    expect(beyondScopes(['payments:read', 'keys:write'])).toBeUndefined()
    expect(beyondScopes(['payments:read', 'requests:write'])).toBe('it lacks requests:write')
    expect(beyondScopes(own.scopes)).toBeUndefined()
  })

  it('no operator’s key, which sees more than a platform key with the same scope', () => {
    expect(beyondScopes(['operations:read'])).toContain('operator’s key')
    expect(beyondScopes(['operations:read', 'accounts:any'])).toBeUndefined()
  })

  it('accounts:any in its own account alone', () => {
    expect(beyondScopes(['payments:read'], false)).toBeUndefined()
    expect(beyondScopes(['payments:read', 'accounts:any'], false)).toContain('own account')
  })

  it.each<[Partial<KeyTerms>, Partial<KeyTerms>, boolean, string | undefined]>([
    [{ callsPerMinute: 60 }, {}, false, undefined],
    [{ callsPerMinute: 61 }, {}, false, 'rate'],
    [{ callsPerMinute: 0 }, {}, false, 'rate'],
    [{ callsPerMinute: 0 }, { callsPerMinute: 0 }, false, undefined],
    [{ callsPerMinute: 0, origins: ['https://shop.example'] }, {}, false, undefined],
    [{ share: 0.1 }, {}, false, undefined],
    [{ share: 0.1001 }, {}, false, 'share'],
    [{}, { share: 0.05 }, false, 'share'],
    [{ share: 0.05 }, { share: 0.05 }, false, undefined],
    [{}, at('2026-04-01'), false, 'ends'],
    [at('2026-04-01'), at('2026-04-01'), false, undefined],
    [at('2026-04-02'), at('2026-04-01'), false, 'ends'],
    [at('2026-04-02'), at('2026-04-01'), true, undefined],
    [at('2026-04-02'), {}, false, undefined],
  ])('%j where it has %j (itself: %s): %s', (wanted, more, isSelf, part) => {
    const detail = beyondLimits(wanted, more, isSelf)
    expect(detail === undefined || detail.includes(part ?? 'nothing')).toBe(true)
    expect(detail === undefined).toBe(part === undefined)
  })
})
