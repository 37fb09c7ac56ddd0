import { describe, expect, it } from 'vitest'
import { followedTopics } from '../../contracts/decode-events.ts'
import { bloomOf } from '../../contracts/logs-bloom.ts'
import { bytesToHex } from '../../domain/hex.ts'
import { createBloomCheck, falsePositives } from './bloom-check.ts'

const PROXY = `0x${'12'.repeat(20)}`
const OTHER = `0x${'34'.repeat(20)}`
const topics = followedTopics.slice(0, 1)
const bloomText = (logs: Parameters<typeof bloomOf>[0]) => bytesToHex(Buffer.from(bloomOf(logs)))

describe('a block without logs is suspicious', () => {
  it.each<[string, string | undefined, boolean]>([
    ['when its bloom has contract and topic', bloomText([{ address: PROXY, topics }]), true],
    ['not when another contract has the topic', bloomText([{ address: OTHER, topics }]), false],
    [
      'not when the contract has another topic',
      bloomText([{ address: PROXY, topics: [`0x${'56'.repeat(32)}`] }]),
      false,
    ],
    ['not when its bloom is empty', `0x${'00'.repeat(256)}`, false],
    ['not when the node gives no bloom', undefined, false],
    ['not when the bloom is of another length', '0xff', false],
  ])('%s', (_, bloom, isSuspicious) => {
    expect(createBloomCheck([PROXY]).isSuspicious(bloom)).toBe(isSuspicious)
  })

  it('once in 50 times when blooms are so full that they say nothing', () => {
    const check = createBloomCheck([PROXY])
    const full = `0x${'ff'.repeat(256)}`
    const found = Array.from({ length: 100 }, () => check.isSuspicious(full))
    expect(found.filter(Boolean)).toHaveLength(2)
    expect(falsePositives(new Uint8Array(256).fill(255), 1, 1)).toBe(1)
    expect(falsePositives(new Uint8Array(256), 1, 1)).toBe(0)
  })
})
