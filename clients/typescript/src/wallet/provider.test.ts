import { expect, it } from 'vitest'
import { codeOf } from './provider.ts'

it.each([
  ['a bare code', { code: 5750 }, 5750],
  ["ethers 6's refusal", { code: 'ACTION_REJECTED', info: { error: { code: 4001 } } }, 4001],
  ["ethers 6's unknown error", { code: 'UNKNOWN_ERROR', error: { code: -32603 } }, -32603],
  ['a refusal as the cause', { code: -1, cause: { cause: { code: 4001 } } }, 4001],
  ['a refusal that a wallet wraps', { code: -32603, data: { originalError: { code: 4001 } } }, 4001],
  ['an unknown chain that a wallet wraps', { code: -32603, data: { originalError: { code: 4902 } } }, 4902],
  ['the outermost of several codes', { code: 5760, cause: { code: -32000 } }, 5760],
  ['text alone', new Error('no'), undefined],
  ['nothing', undefined, undefined],
  ['a string', 'no', undefined],
])('codeOf: %s', (_, error, code) => {
  expect(codeOf(error)).toBe(code)
})

it('codeOf: an error that is its own cause', () => {
  const error: { cause?: unknown } = {}
  error.cause = error
  expect(codeOf(error)).toBeUndefined()
})
