import { expect, it } from 'vitest'
import { parseTraceparent } from './telemetry.ts'

const TRACE = '0af7651916cd43dd8448eb211c80319c'
const SPAN = 'b7ad6b7169203331'

it.each([
  [`00-${TRACE}-${SPAN}-01`, true],
  [`00-${TRACE}-${SPAN}-00`, false],
  [`cc-${TRACE}-${SPAN}-03-what-comes-later`, true],
])('reads %s', (header, isSampled) => {
  expect(parseTraceparent(header)).toEqual({ traceId: TRACE, spanId: SPAN, isSampled })
})

it.each([
  ['nothing', undefined],
  ['two', [`00-${TRACE}-${SPAN}-01`, `00-${TRACE}-${SPAN}-01`]],
  ['capitals', `00-${TRACE.toUpperCase()}-${SPAN}-01`],
  ['the forbidden version', `ff-${TRACE}-${SPAN}-01`],
  ['a trace of zeros', `00-${'0'.repeat(32)}-${SPAN}-01`],
  ['a span of zeros', `00-${TRACE}-${'0'.repeat(16)}-01`],
  ['a short trace', `00-${TRACE.slice(1)}-${SPAN}-01`],
  ['more without a dash', `00-${TRACE}-${SPAN}-0100`],
])('ignores %s, as W3C asks', (_, header) => {
  expect(parseTraceparent(header)).toBeUndefined()
})
