import { encodeAbiParameters, stringToHex } from 'viem'
import { expect, it } from 'vitest'
import { decodeText } from './returned-texts.ts'

const asString = (text: string) => encodeAbiParameters([{ type: 'string' }], [text])
const asWord = (text: string) => stringToHex(text, { size: 32 })

it.each([
  ['a string', asString('USDC'), 'USDC'],
  ['a string of several words', asString('a'.repeat(64)), 'a'.repeat(64)],
  ['bytes32, as old tokens have', asWord('MKR'), 'MKR'],
  ['a string that is too long', asString('a'.repeat(65)), undefined],
  ['an escape sequence of a terminal', asString('\u001b[2J'), undefined],
  ['nothing', asString(''), undefined],
  ['a word of zeros', asWord(''), undefined],
  ['a string that is cut off', asString('a'.repeat(64)).slice(0, -64), undefined],
  ['half a word', '0x1234', undefined],
  ['no bytes', '0x', undefined],
])('%s', (_, data, text) => {
  expect(decodeText(data)).toBe(text)
})
