import { expect, it } from 'vitest'
import { gatherErrors, mergeErrors, readAll, readAllInOrder, readEach, readOnce } from './gather-errors.ts'
import { WaybillError, waybillError } from './waybill-error.ts'

const wrong = (field: string) => () => {
  throw waybillError('MISSING_FIELD', { field })
}

function caught(run: () => unknown): unknown {
  try {
    return run()
  } catch (error) {
    return error
  }
}

const fieldsOf = (error: unknown) => (error as WaybillError).violations.map(({ field }) => field)

it('reads all values if none is wrong', async () => {
  expect(readAll({ a: () => 1, b: () => 'x' })).toEqual({ a: 1, b: 'x' })
  expect(await readAllInOrder({ a: async () => 1 })).toEqual({ a: 1 })
  expect(readEach([1, 2], (value, at) => value + at)).toEqual([1, 3])
})

it('tells all wrong values at once, with the reason and the message of the first', async () => {
  const readers = { a: wrong('a'), b: () => 1, c: () => readEach(['x', 'y'], (name) => wrong(name)()) }
  const error = caught(() => readAll(readers))
  expect(error).toMatchObject({ reason: 'MISSING_FIELD', metadata: { field: 'a' } })
  expect((error as Error).message).toContain('a is missing')
  expect(fieldsOf(error)).toEqual(['a', 'x', 'y'])
  expect(fieldsOf(await readAllInOrder(readers).catch((thrown: unknown) => thrown))).toEqual(['a', 'x', 'y'])
})

it('tells a wrong value once that others depend on', () => {
  const network = readOnce(wrong('network'))
  const error = caught(() => readAll({ network, payee: () => network(), amount: wrong('amount') }))
  expect(fieldsOf(error)).toEqual(['network', 'amount'])
})

it('names the field of a reason whose message does not, and none where there is none', () => {
  const mismatch = waybillError('CURRENCY_MISMATCH', { invoiceCurrency: 'DAI', paymentCurrency: 'USDC-BASE' })
  const body = waybillError('MALFORMED_BODY', { detail: 'it is cut off' })
  expect(fieldsOf(mergeErrors([mismatch, body]))).toEqual(['invoiceCurrency', ''])
})

it.each([
  ['another failure', new Error('the disk is full')],
  ['a refusal that is no mistake of the input', waybillError('OVERLOADED', {})],
])('throws %s at once', (_, failure) => {
  const throwIt = () => {
    throw failure
  }
  expect(caught(() => readAll({ a: wrong('a'), b: throwIt }))).toBe(failure)
})

it('ends at 16 errors, and says that the rest was not checked', () => {
  const noteAll = () => {
    const errors = gatherErrors()
    for (let at = 0; at < 100; at++) errors.note(waybillError('MISSING_FIELD', { field: `f${at}` }))
  }
  const error = caught(noteAll) as WaybillError
  expect(fieldsOf(error)).toHaveLength(16)
  expect(error.unlisted).toEqual({ count: 0, isRestUnchecked: true })
  const outer = caught(() => readAll({ a: noteAll, b: wrong('b') })) as WaybillError
  expect([outer.violations.length, outer.unlisted.isRestUnchecked]).toEqual([16 + 1, true])
})
