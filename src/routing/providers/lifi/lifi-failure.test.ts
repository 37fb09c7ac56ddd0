import { describe, expect, it } from 'vitest'
import { failureOfAnswer } from './lifi-failure.ts'

const failureOf = (status: number, value: unknown, apiKey?: string) =>
  failureOfAnswer({ status, body: { ok: true, value }, headers: new Headers(), apiKey })
const notJson = (status: number) => failureOfAnswer({ status, body: { ok: false }, headers: new Headers() })
const tools = (...codes: string[]) => codes.map((code) => ({ errorType: 'NO_QUOTE', code, tool: 'across' }))

describe('an error of LI.FI', () => {
  it.each([
    [1000, 'UNREACHABLE'],
    [1001, 'NO_ROUTE'],
    [1002, 'NO_ROUTE'],
    [1003, 'NO_ROUTE'],
    [1004, 'NO_ROUTE'],
    [1005, 'QUOTA'],
    [1006, 'UNREACHABLE'],
    [1007, 'NO_ROUTE'],
    [1008, 'UNREACHABLE'],
    [1009, 'TIMEOUT'],
    [1010, 'UNAUTHORIZED'],
    [1011, 'REFUSED'],
    [1012, 'UNREACHABLE'],
    [1013, 'REFUSED'],
  ])('with code %i is %s, whatever its status', (code, kind) => {
    expect(failureOf(400, { message: 'no', code }).kind).toBe(kind)
    expect(failureOf(500, { message: 'no', code }).kind).toBe(kind)
  })

  it.each([
    [400, 'REFUSED'],
    [401, 'UNAUTHORIZED'],
    [403, 'UNAUTHORIZED'],
    [404, 'NO_ROUTE'],
    [422, 'REFUSED'],
    [429, 'QUOTA'],
    [500, 'UNREACHABLE'],
    [418, 'UNREACHABLE'],
  ])('without a code is classified by its status: %i is %s', (status, kind) => {
    expect(failureOf(status, { message: 'no' }).kind).toBe(kind)
    expect(failureOf(status, { message: 'no', code: 77 }).kind).toBe(kind)
  })

  it('that is not JSON comes from a gateway, so LI.FI is unreachable', () => {
    expect(notJson(404)).toEqual({ kind: 'UNREACHABLE', detail: 'HTTP status 404' })
    expect(notJson(200)).toEqual({ kind: 'INCONSISTENT', detail: 'HTTP status 200' })
    expect(notJson(429)).toEqual({ kind: 'QUOTA', seconds: 60 })
  })

  it.each([
    [tools('AMOUNT_TOO_LOW', 'NO_POSSIBLE_ROUTE'), 'AMOUNT_TOO_SMALL'],
    [tools('FEES_HIGHER_THAN_AMOUNT'), 'AMOUNT_TOO_SMALL'],
    [tools('AMOUNT_TOO_LOW', 'INSUFFICIENT_LIQUIDITY'), 'NO_ROUTE'],
    [tools('NO_POSSIBLE_ROUTE'), 'NO_ROUTE'],
    [{ filteredOut: [], failed: [{ overallPath: 'x', subpaths: { a: tools('AMOUNT_TOO_LOW') } }] }, 'AMOUNT_TOO_SMALL'],
    [{ failed: [null, { subpaths: 5 }] }, 'NO_ROUTE'],
    [[null, 7, {}], 'NO_ROUTE'],
  ])('tells by its tools why there is no route (%#)', (errors, kind) => {
    expect(failureOf(404, { message: 'no route', code: 1002, errors }).kind).toBe(kind)
  })

  it('names the tools’ codes, each once, else its message', () => {
    const errors = tools('INSUFFICIENT_LIQUIDITY', 'TOOL_TIMEOUT', 'INSUFFICIENT_LIQUIDITY')
    expect(failureOf(404, { message: 'no', code: 1002, errors })).toMatchObject({
      detail: 'INSUFFICIENT_LIQUIDITY, TOOL_TIMEOUT',
    })
    expect(failureOf(404, { message: 'nothing found', code: 1002 })).toMatchObject({ detail: 'nothing found' })
  })

  it.each([
    ['its own header', { 'ratelimit-reset': '30', 'retry-after': '5' }, 30],
    ['Retry-After', { 'retry-after': '5' }, 5],
    ['nothing', {}, 60],
    ['a date', { 'retry-after': 'Fri, 20 Nov 2026 15:00:00 GMT' }, 60],
    ['a year', { 'ratelimit-reset': '31536000' }, 7_200],
  ])('that refuses more questions pauses them by %s', (_, headers, seconds) => {
    const answer = { status: 429, body: { ok: false }, headers: new Headers(headers) } as const
    expect(failureOfAnswer(answer)).toEqual({ kind: 'QUOTA', seconds })
  })

  it('never repeats the key', () => {
    expect(JSON.stringify(failureOf(400, { message: 'key abc-1 of abc-1', code: 1011 }, 'abc-1'))).not.toContain('abc')
  })
})
