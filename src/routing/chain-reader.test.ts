import { describe, expect, it } from 'vitest'
import { decodeGasPrice } from './chain-reader.ts'

describe('the price of gas', () => {
  const history = (baseFees: number[], tips: number[]) => ({
    baseFeePerGas: baseFees.map((fee) => `0x${fee.toString(16)}`),
    reward: tips.map((tip) => [`0x${tip.toString(16)}`]),
  })
  it.each([
    ['the next base fee and the median tip', history([1, 2, 3, 4, 5, 100], [9, 1, 7, 0, 3]), 103n],
    ['the next base fee alone where nobody tips', history([1, 2], [0]), 2n],
    ['of a young chain with few blocks', history([5, 6, 7], [1, 3]), 10n],
    ['of a chain without a base fee', history([0, 0, 0, 0], [3, 1, 2]), 2n],
    ['of a chain without blocks', history([8], []), 8n],
  ])('is %s', (_, answer, price) => {
    expect(decodeGasPrice(answer)).toBe(price)
  })

  it.each([
    [null],
    ['0x1'],
    [{}],
    [{ baseFeePerGas: [], reward: [] }],
    [{ baseFeePerGas: ['0x1'] }],
    [{ baseFeePerGas: ['1'], reward: [] }],
    [{ baseFeePerGas: [`0x${'f'.repeat(65)}`], reward: [] }],
    [{ baseFeePerGas: ['0x1'], reward: [null] }],
    [{ baseFeePerGas: ['0x1'], reward: [['-1']] }],
  ])('is not to be had of %j', (answer) => {
    expect(() => decodeGasPrice(answer)).toThrow(/fee history/)
  })
})
