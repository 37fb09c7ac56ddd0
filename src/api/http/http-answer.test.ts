import { describe, expect, it } from 'vitest'
import { acceptsJson, chooseEncoding, matchesEtag } from './http-answer.ts'

describe('chooseEncoding', () => {
  it.each([
    [undefined, undefined],
    ['', undefined],
    ['gzip', 'gzip'],
    ['GZIP', 'gzip'],
    ['br', 'br'],
    ['gzip, deflate, br, zstd', 'gzip'],
    ['br, gzip;q=0.1', 'br'],
    ['br;q=0, gzip;q=0.1', 'gzip'],
    ['gzip;q=0', undefined],
    ['gzip;q=0.000', undefined],
    ['*', 'gzip'],
    ['*;q=0', undefined],
    ['gzip;q=0, *', 'br'],
    ['identity', undefined],
    ['gzip;q=x', undefined],
  ])('%s → %s', (header, expected) => {
    expect(chooseEncoding(header)).toBe(expected)
  })
})

describe('acceptsJson', () => {
  it.each([
    [undefined, true],
    ['', true],
    ['application/json', true],
    ['Application/JSON; charset=utf-8', true],
    ['text/html, */*;q=0.1', true],
    ['application/*', true],
    ['text/html', false],
    ['*/*, application/json;q=0', false],
    ['application/*;q=0, */*', false],
  ])('%s → %s', (header, expected) => {
    expect(acceptsJson(header)).toBe(expected)
  })
})

describe('matchesEtag', () => {
  it.each([
    [undefined, false],
    ['*', true],
    ['W/"a"', true],
    ['"a"', true],
    ['"b", W/"a"', true],
    ['"b"', false],
    ['a', false],
  ])('%s → %s', (header, expected) => {
    expect(matchesEtag(header, 'W/"a"')).toBe(expected)
  })
})
