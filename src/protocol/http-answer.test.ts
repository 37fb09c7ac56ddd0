import { describe, expect, it } from 'vitest'
import { acceptsGzip, acceptsJson, matchesEtag } from './http-answer.ts'

describe('acceptsGzip', () => {
  it.each([
    [undefined, false],
    ['', false],
    ['gzip', true],
    ['GZIP', true],
    ['br, gzip;q=0.1', true],
    ['gzip;q=0', false],
    ['gzip;q=0.000', false],
    ['*', true],
    ['*;q=0', false],
    ['gzip;q=0, *', false],
    ['identity', false],
    ['gzip;q=x', false],
  ])('%s → %s', (header, expected) => {
    expect(acceptsGzip(header)).toBe(expected)
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
