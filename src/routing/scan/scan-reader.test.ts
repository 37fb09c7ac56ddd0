import { describe, expect, it } from 'vitest'
import { decodeGasPrice } from './scan-reader.ts'

describe('the price of gas', () => {
  const history = (baseFees: number[], tips: number[]) => ({
    baseFeePerGas: baseFees.map((fee) => `0x${fee.toString(16)}`),
    reward: tips.map((tip) => [`0x${tip.toString(16)}`]),
  })
  it.each([
    ['the next base fee and the median tip', history([1, 2, 3, 4, 5, 100], [9, 1, 7, 0, 3]), 103n],
    ['the next base fee alone when nobody tips', history([1, 2], [0]), 2n],
    ['right on a young chain with few blocks', history([5, 6, 7], [1, 3]), 10n],
    ['the median tip on a chain without a base fee', history([0, 0, 0, 0], [3, 1, 2]), 2n],
    ['the base fee on a chain without blocks', history([8], []), 8n],
  ])('is %s', (_, answer, price) => {
    expect(decodeGasPrice(answer).gasPrice).toBe(price)
  })

  it.each<[string, number[], number[], string | undefined, bigint]>([
    ['what the node suggests when no block had transactions', [0, 0], [0, 0], '0x32', 150n],
    ['what the node suggests when others paid less', [7, 9, 8], [0.5, 0.1, 1], '0x32', 150n],
    ['what others paid when the node suggests less', [70, 90, 80], [0.5, 0.1, 1], '0x32', 180n],
    ['what others paid in blocks that had transactions', [0, 70, 0], [0, 0.0001, 0], '0x32', 170n],
    ['what others paid when the node suggests nothing', [0, 7, 0], [0, 0.5, 0], undefined, 107n],
    ['what others paid when the suggestion is not a number', [7], [0.5], 'much', 107n],
  ])('tips %s', (_, tips, gasUsedRatio, suggested, price) => {
    const baseFees = [...tips.map(() => 1), 100]
    expect(decodeGasPrice({ ...history(baseFees, tips), gasUsedRatio }, suggested).gasPrice).toBe(price)
  })

  it.each([
    ['twice the next base fee and the tip', history([1, 100], [7]), '0x5', 207n],
    ['the tip alone without base fees', history([0, 0], [7]), undefined, 7n],
    ['right on a chain without blocks', history([8], []), '0x1', 17n],
  ])('of which wallets demand is %s', (_, answer, suggested, price) => {
    expect(decodeGasPrice(answer, suggested).maxFeePerGas).toBe(price)
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
  ])('cannot be reported from %j', (answer) => {
    expect(() => decodeGasPrice(answer)).toThrow(/fee history/)
  })
})
