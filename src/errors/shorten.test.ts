import fc from 'fast-check'
import { expect, it } from 'vitest'
import { shorten } from './shorten.ts'

it.each([
  ['short', 10, 'short'],
  // The ellipsis itself takes nine.
  ['a text that is long', 12, 'a t…'],
  ['use one of: BASE, POLYGON, BSC, ETHEREUM', 32, 'use one of: BASE and 3 more'],
  ['BASE, POLYGON, BSC, ETHEREUM', 24, 'BASE, POLYGON and 2 more'],
  ['use one of: BASE, POLYGON and 60 more', 30, 'use one of: BASE and 61 more'],
  ['use one of: BASE, POLYGON', 14, 'use o…'],
  ['中文网络', 21, '中…'],
  ['100 % of all of it', 14, '100 …'],
])('%s in %i bytes: %s', (text, maxSize, expected) => {
  expect(shorten(text, maxSize)).toBe(expected)
})

it('never takes more bytes than it may, and keeps what fits', () => {
  const name = fc.string({ unit: 'grapheme', maxLength: 20 })
  const text = fc.oneof(
    name,
    fc.array(name, { maxLength: 60 }).map((names) => names.join(', ')),
    fc.array(fc.string({ maxLength: 9 }), { maxLength: 60 }).map((names) => `use one of: ${names.join(', ')}`),
  )
  fc.assert(
    fc.property(text, fc.integer({ min: 9, max: 400 }), (whole, maxSize) => {
      const short = shorten(whole, maxSize)
      const size = short.toWellFormed().replace(/[^ -$&-~]+/g, encodeURIComponent).length
      expect(size).toBeLessThanOrEqual(maxSize)
      const wholeSize = whole.toWellFormed().replace(/[^ -$&-~]+/g, encodeURIComponent).length
      if (wholeSize <= maxSize && whole.isWellFormed()) expect(short).toBe(whole)
    }),
  )
})

it('cuts a long list of names in a time that grows with its length, not with its square', () => {
  const names = Array.from({ length: 50_000 }, (_, at) => `N${at}`).join(', ')
  const startMs = performance.now()
  expect(shorten(names, 400)).toMatch(/^N0, N1, .* and \d+ more$/)
  // To join the names anew for each that is left out takes a minute.
  expect(performance.now() - startMs).toBeLessThan(2_000)
})
