import { expect, it } from 'vitest'
import { sentence } from './sentence.ts'

it.each([
  ['add 5 USDC', 'Add 5 USDC.'],
  ['demo-bridge did not answer', 'demo-bridge did not answer.'],
  ['feeAddress is not an address', 'feeAddress is not an address.'],
  ['ETHEREUM did not answer.', 'ETHEREUM did not answer.'],
  ['', ''],
])('writes "%s" as a sentence', (text, written) => {
  expect(sentence(text)).toBe(written)
})
