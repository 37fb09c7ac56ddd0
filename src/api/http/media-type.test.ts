import { describe, expect, it } from 'vitest'
import { readMediaType } from './media-type.ts'

describe('a Content-Type', () => {
  it.each([
    ['application/json', 'application/json', true],
    ['application/json;', 'application/json', true],
    ['application/json;;', 'application/json', true],
    ['application/json ; ; ', 'application/json', true],
    ['application/json;charset=utf-8;', 'application/json', true],
    ['Application/JSON; Charset=UTF-8', 'application/json', true],
    ['application/json;charset="utf-8"', 'application/json', true],
    ['application/json;charset="utf\\-8"', 'application/json', true],
    ['application/json; charset = utf8', 'application/json', true],
    ['application/json\t;\tcharset=utf-8\t', 'application/json', true],
    ['application/json;charset=utf-8;charset=UTF-8', 'application/json', true],
    ['application/json;charset=utf-8;charset=latin1', 'application/json', true],
    ['application/json;charset=latin1;charset=utf-8', 'application/json', false],
    ['application/json;charset=""', 'application/json', false],
    ['application/json;v="a;charset=latin1"', 'application/json', true],
    ['application/json;v="\\";charset=latin1"', 'application/json', true],
    ['application/json;version=1', 'application/json', true],
    ['application/grpc+proto;;', 'application/grpc+proto', true],
    ['application/json;charset', 'application/json', true],
    ['application/json;charset=', 'application/json', true],
    ['application/json;charset="utf-8', 'application/json', true],
    ['application/json;=utf-8', 'application/json', true],
  ])('%s', (text, type, isUtf8) => {
    expect(readMediaType(text)).toEqual({ type, isUtf8 })
  })

  it.each([
    '',
    ';',
    'json',
    'application/',
    '/json',
    'application / json',
    'application/json, text/plain',
    'application/json charset=utf-8',
  ])('%j names no type', (text) => {
    expect(readMediaType(text)).toBeUndefined()
  })

  it.each([';', '; ', ';a=b', ';a="b"', '\t', '"'])('of 64 KiB of %j is read in linear time', (part) => {
    const startMs = performance.now()
    readMediaType(`application/json${part.repeat(65_536 / part.length)}`)
    expect(performance.now() - startMs).toBeLessThan(1_000)
  })
})
