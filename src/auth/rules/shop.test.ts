import { describe, expect, it } from 'vitest'
import { parseShop } from './shop.ts'

const bytes = (text: string) => Buffer.from(text, 'latin1')

describe('a shop', () => {
  it.each([
    ['PNG', '\x89PNG\r\n\x1a\n', 'png'],
    ['JPEG', '\xff\xd8\xff\xe0', 'jpeg'],
    ['GIF', 'GIF89a', 'gif'],
    ['WebP', 'RIFF\0\0\0\0WEBP', 'webp'],
    ['SVG', '<?xml version="1.0"?>\n<!-- a --><svg xmlns="http://www.w3.org/2000/svg"/>', 'svg+xml'],
  ])('takes a logo in %s', (_, start, type) => {
    expect(parseShop({ logo: bytes(start) })?.logo).toBe(`data:image/${type};base64,${bytes(start).toString('base64')}`)
  })

  it.each([
    ['a page', { logo: bytes('<html><svg></svg></html>') }, /^logo is not valid: it is no PNG/],
    ['an empty file', { logo: bytes('') }, /^logo is not valid/],
    [
      'a large file',
      { logo: bytes(`GIF89a${'x'.repeat(16_384)}`) },
      /^logo is not valid: it has more than 16384 bytes/,
    ],
    ['no name', { name: '' }, /^name is not valid: it is empty/],
    ['a long name', { name: 'x'.repeat(81) }, /more than 80 characters/],
    ['a name that is read in another order', { name: 'Shop \u202e0001' }, /changes the direction of text/],
    ['a name of two lines', { name: 'a\nb' }, /control character/],
    ['a colour by name', { color: 'green' }, /^color is not valid: "green"/],
    ['a colour with more behind it', { color: '#0a7d4f;x' }, /^color is not valid/],
    [
      'a radius that is no number',
      { cornerRadius: Number.NaN },
      /^cornerRadius is not valid: it is not a whole number/,
    ],
    ['half a pixel', { cornerRadius: 0.5 }, /^cornerRadius is not valid/],
    ['too large a radius', { cornerRadius: 33 }, /^cornerRadius is not valid/],
    ['too small a radius', { cornerRadius: -1 }, /^cornerRadius is not valid/],
  ])('refuses %s', (_, input, message) => {
    expect(() => parseShop(input)).toThrow(message)
  })

  it('is none where nothing was given', () => {
    expect(parseShop({})).toBeUndefined()
    expect(parseShop({ cornerRadius: 0 })).toEqual({ cornerRadius: 0 })
  })
})
