import { describe, expect, it } from 'vitest'
import { readMediaType } from './media-type.ts'

describe('a Content-Type', () => {
  it.each([
    ['application/json', 'application/json', true, true],
    ['application/json;', 'application/json', true, true],
    ['application/json;;', 'application/json', true, true],
    ['application/json ; ; ', 'application/json', true, true],
    ['application/json;charset=utf-8;', 'application/json', true, true],
    ['Application/JSON; Charset=UTF-8', 'application/json', true, true],
    ['application/json;charset="utf-8"', 'application/json', true, true],
    ['application/json;charset="utf\\-8"', 'application/json', true, true],
    ['application/json; charset = utf8', 'application/json', true, true],
    ['application/json\t;\tcharset=utf-8\t', 'application/json', true, true],
    ['application/json;charset=utf-8;charset=UTF-8', 'application/json', true, true],
    ['application/json;charset=utf-8;charset=latin1', 'application/json', true, false],
    ['application/json;charset=latin1;charset=utf-8', 'application/json', true, false],
    ['application/json;charset=""', 'application/json', true, false],
    ['application/json;v="a;charset=latin1"', 'application/json', true, true],
    ['application/json;v="\\";charset=latin1"', 'application/json', true, true],
    ['application/json;version=1', 'application/json', true, true],
    ['application/grpc+proto;;', 'application/grpc+proto', true, true],
    ['application/json;charset', 'application/json', false, true],
    ['application/json;charset=', 'application/json', false, true],
    ['application/json;charset="utf-8', 'application/json', false, true],
    ['application/json;=utf-8', 'application/json', false, true],
    ['application/json, text/plain', 'application/json', false, true],
    ['application/json charset=utf-8', 'application/json', false, true],
  ])('%s', (text, type, isWellFormed, isUtf8) => {
    expect(readMediaType(text)).toEqual({ type, isWellFormed, isUtf8 })
  })

  it.each(['', ';', 'json', 'application/', '/json', 'application / json'])('%j names no type', (text) => {
    expect(readMediaType(text)).toBeUndefined()
  })

  it.each([';', '; ', ';a=b', ';a="b"', '\t', '"'])('of 64 KiB of %j is read in linear time', (part) => {
    const startMs = performance.now()
    readMediaType(`application/json${part.repeat(65_536 / part.length)}`)
    expect(performance.now() - startMs).toBeLessThan(1_000)
  })
})
