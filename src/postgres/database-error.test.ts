import { expect, test } from 'vitest'
import { classifyDatabaseError } from './database-error.ts'

const withCode = (code: string) => Object.assign(new Error('some message'), { code })
const named = (name: string, message: string) => Object.assign(new Error(message), { name })

test.each([
  ['ECONNREFUSED', 'unavailable'],
  ['EPIPE', 'unavailable'],
  ['ENOENT', 'unavailable'],
  ['08006', 'unavailable'],
  ['53300', 'unavailable'],
  ['53100', 'unavailable'],
  ['57P01', 'unavailable'],
  ['57P03', 'unavailable'],
  ['25006', 'unavailable'],
  ['57014', 'timeout'],
  ['55P03', 'timeout'],
  ['40001', 'serialization'],
  ['40P01', 'serialization'],
  ['23505', 'unique'],
  ['23503', 'other'],
  ['42601', 'other'],
  ['28P01', 'other'],
  ['EBADF', 'other'],
])('code %s is %s', (code, kind) => {
  expect(classifyDatabaseError(withCode(code))).toBe(kind)
})

test.each([
  [new Error('Connection terminated unexpectedly'), 'unavailable'],
  [new Error('Connection terminated due to connection timeout'), 'unavailable'],
  [named('KnexTimeoutError', 'Knex: Timeout acquiring a connection. The pool is probably full.'), 'unavailable'],
  [named('KnexTimeoutError', 'Defined query timeout of 5ms exceeded when running query.'), 'timeout'],
  [new Error('Received unexpected rowDescription message'), 'other'],
  [new TypeError('x is not a function'), 'other'],
  ['Connection terminated', 'other'],
  [undefined, 'other'],
  // as Citus reports a key that exists
  [Object.assign(withCode('XX000'), { routine: 'ReportCopyError' }), 'unique'],
])('%s is %s', (error, kind) => {
  expect(classifyDatabaseError(error)).toBe(kind)
})
