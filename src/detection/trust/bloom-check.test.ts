import { describe, expect, it } from 'vitest'
import { bloomOf } from '../../contracts/block-proofs.ts'
import { followedTopics } from '../../contracts/decode-events.ts'
import { bytesToHex } from '../../domain/hex.ts'
import { createBloomCheck } from './check-block.ts'

const PROXY = `0x${'12'.repeat(20)}`
const OTHER = `0x${'34'.repeat(20)}`
const topics = followedTopics.slice(0, 1)
const bloomText = (logs: Parameters<typeof bloomOf>[0]) => bytesToHex(Buffer.from(bloomOf(logs)))

/** The bloom of a followed log, in which so many bytes are full. */
const fullBy = (bytes: number) => {
  const bloom = Buffer.from(bloomOf([{ address: PROXY, topics }]))
  return bytesToHex(bloom.fill(255, 0, bytes))
}

const judge = (logsBloom: string | undefined, isHashed = true) =>
  createBloomCheck([PROXY]).judge({ logsBloom, isHashed })

describe('a bloom says of followed logs', () => {
  it.each<[string, string, string | undefined]>([
    ['MAYBE when it has contract and topic', 'MAYBE', bloomText([{ address: PROXY, topics }])],
    ['NO when another contract has the topic', 'NO', bloomText([{ address: OTHER, topics }])],
    ['NO when the contract has another topic', 'NO', bloomText([{ address: PROXY, topics: [`0x${'56'.repeat(32)}`] }])],
    ['NO when it is empty', 'NO', `0x${'00'.repeat(256)}`],
    ['nothing when it is full', 'UNKNOWN', `0x${'ff'.repeat(256)}`],
    ['nothing when more than a quarter of its bits are set', 'UNKNOWN', fullBy(65)],
    ['MAYBE when no more are', 'MAYBE', fullBy(40)],
    ['nothing when the node gives none', 'UNKNOWN', undefined],
    ['nothing when it is of another length', 'UNKNOWN', '0xff'],
  ])('%s', (_, reported, bloom) => {
    expect(judge(bloom)).toBe(reported)
  })

  it('never NO where the hash does not prove it', () => {
    expect(judge(`0x${'00'.repeat(256)}`, false)).toBe('UNKNOWN')
    expect(judge(bloomText([{ address: PROXY, topics }]), false)).toBe('MAYBE')
  })
})
