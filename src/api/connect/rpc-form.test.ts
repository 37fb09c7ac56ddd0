import type { IncomingHttpHeaders } from 'node:http'
import { expect, it } from 'vitest'
import { readTimeout } from './rpc-form.ts'

const readGrpcTimeout = (headers: IncomingHttpHeaders) => readTimeout({ protocol: 'grpc' }, headers)
const readConnectTimeout = (headers: IncomingHttpHeaders) => readTimeout({ protocol: 'connect' }, headers)

it.each([
  [undefined, undefined],
  ['1H', 3_600_000],
  ['2M', 120_000],
  ['3S', 3000],
  ['4m', 4],
  ['500u', 0.5],
  ['99999999n', 99.999999],
  ['0m', 0],
])('grpc-timeout %s is %s ms', (value, expected) => {
  expect(readGrpcTimeout(value === undefined ? {} : { 'grpc-timeout': value })).toBe(expected)
})

it.each(['', '1', 'S', '-1S', '1.5S', '999999999S', '1s', '1S '])('grpc-timeout %j is refused', (value) => {
  expect(() => readGrpcTimeout({ 'grpc-timeout': value })).toThrow(/is not a timeout/)
})

it.each([
  [undefined, undefined],
  ['0', 0],
  ['9999999999', 9_999_999_999],
])('connect-timeout-ms %s is %s ms', (value, expected) => {
  expect(readConnectTimeout(value === undefined ? {} : { 'connect-timeout-ms': value })).toBe(expected)
})

it.each(['', 'x', '-1', '1.5', '99999999999'])('connect-timeout-ms %j is refused', (value) => {
  expect(() => readConnectTimeout({ 'connect-timeout-ms': value })).toThrow(/is not a timeout/)
})
