import { describe, expect, it } from 'vitest'
import type { Address } from '../../domain/address.ts'
import { decodeSimulation, encodeSimulation } from './simulation.ts'
import type { GasQuestion } from './steps.ts'

const WALLET = '0x00000000000000000000000000000000000000aa' as Address
const call = { to: WALLET, data: '0x01', value: 0n } as const
const question: GasQuestion = {
  wallet: WALLET,
  balance: 5n,
  quotedAtSec: 100,
  simulateAtSec: 112,
  calls: [call, { ...call, value: 7n }],
}

const hex = (value: number) => `0x${value.toString(16)}`
const done = (gasUsed: number, more: object = {}) => ({ status: '0x1', gasUsed: hex(gasUsed), ...more })
const decode = (...calls: object[]) =>
  decodeSimulation(
    calls.map((one) => ({ calls: [one] })),
    question,
  )

describe('a simulation', () => {
  it('gives each transaction a block of its own, whose time it sets, and the wallet coins for any gas', () => {
    const [{ blockStateCalls, validation }, block] = JSON.parse(encodeSimulation(question).params as string) as [
      { blockStateCalls: object[]; validation: boolean },
      string,
    ]
    expect([validation, block]).toEqual([false, 'latest'])
    expect(blockStateCalls).toEqual([
      {
        blockOverrides: { time: '0x70' },
        stateOverrides: { [WALLET]: { balance: `0x${(5n + (1n << 80n)).toString(16)}` } },
        calls: [{ from: WALLET, to: WALLET, value: '0x0', input: '0x01' }],
      },
      { blockOverrides: { time: '0x71' }, calls: [{ from: WALLET, to: WALLET, value: '0x7', input: '0x01' }] },
    ])
  })

  it.each<[string, object, bigint, bigint]>([
    ['the gas before refunds where the node tells it', done(50_000, { maxUsedGas: hex(56_001) }), 50_000n, 56_001n],
    ['a quarter more where the node does not tell it', done(50_000), 50_000n, 62_500n],
    ['a quarter more where the node tells less than was used', done(50_000, { maxUsedGas: '0x1' }), 50_000n, 62_500n],
    [
      'a quarter more where the node tells more than double',
      done(50_000, { maxUsedGas: hex(150_000) }),
      50_000n,
      62_500n,
    ],
  ])('measures %s', (_, first, used, most) => {
    const answer = decode(first, done(21_000))
    expect(answer && 'steps' in answer && answer.steps[0]).toEqual({ way: 'SIMULATED', used, most })
  })

  it.each<[string, unknown]>([
    ['nothing', undefined],
    ['an object', {}],
    ['no blocks', []],
    ['fewer blocks than were asked for', [{ calls: [done(50_000)] }]],
    ['all calls in one block', [{ calls: [done(50_000), done(50_000)] }]],
    ['a block without calls', [{ calls: [done(50_000)] }, {}]],
    ['no object', [{ calls: [done(50_000)] }, { calls: [7] }]],
    ['no gas', [{ calls: [done(50_000)] }, { calls: [{ status: '0x1' }] }]],
    ['less gas than any transaction takes', [{ calls: [done(50_000)] }, { calls: [done(20_999)] }]],
    ['more gas than any payment takes', [{ calls: [done(30_000_001)] }, { calls: [done(50_000)] }]],
  ])('is no answer when it is %s', (_, result) => {
    expect(decodeSimulation(result, question)).toBeUndefined()
  })

  it.each<[string, object, string]>([
    [
      'an error with data',
      { error: { code: -32000, message: 'execution reverted', data: errorOf('paused') } },
      'paused',
    ],
    ['wrapped data', { error: { code: 3, message: '', data: { data: errorOf('paused') } } }, 'paused'],
    ['returned data', { returnData: errorOf('paused'), error: { code: -3200, message: 'execution failed' } }, 'paused'],
    ['words alone', { returnData: '0x', error: { message: 'execution reverted' } }, 'execution reverted'],
    ['nothing', {}, 'the contract gives no reason'],
    [
      'all gas of the block, which it used',
      { gasUsed: hex(45_000_000), error: { message: 'out of gas' } },
      'out of gas',
    ],
  ])('tells which transaction would revert, and why, by %s', (_, more, detail) => {
    const reverted = { status: '0x0', gasUsed: hex(30_000), ...more }
    expect(decode(done(50_000), reverted)).toEqual({ reverted: { place: 1, detail } })
  })
})

function errorOf(text: string): string {
  const bytes = Buffer.from(text).toString('hex')
  return `0x08c379a0${'20'.padStart(64, '0')}${text.length.toString(16).padStart(64, '0')}${bytes.padEnd(64, '0')}`
}
