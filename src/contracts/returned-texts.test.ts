import { expect, it } from 'vitest'
import { revertReason } from './returned-texts.ts'

function errorOf(text: string): string {
  const bytes = Buffer.from(text).toString('hex')
  return `0x08c379a0${'20'.padStart(64, '0')}${text.length.toString(16).padStart(64, '0')}${bytes.padEnd(64, '0')}`
}

it.each([
  [errorOf('a reason'), 'a reason'],
  [`0x4e487b71${'11'.padStart(64, '0')}`, 'panic 0x11'],
  ['0x7939f424', "the contract's error 0x7939f424"],
  [`0x08c379a0${'f'.repeat(128)}`, 'as the node says'],
  ['0x', 'as the node says'],
  [undefined, 'as the node says'],
])('the reason of %s is %s', (data, reason) => {
  expect(revertReason(data, 'as the node says')).toBe(reason)
})
