import { beforeEach, describe, expect, it } from 'vitest'
import { recordLogs } from '../../../test/support/logs.ts'
import type { ChainView } from '../read/chain-reader.ts'
import { createFinality, type Finality } from './finality.ts'

let nowMs: number
let logs: ReturnType<typeof recordLogs>
let finality: Finality

beforeEach(() => {
  nowMs = 0
  logs = recordLogs()
  const config = { useFinalizedTag: true, depth: 30 }
  finality = createFinality({ network: 'BASE', config, logger: logs, clock: () => new Date(nowMs) })
})

const header = (number: number) => ({ number, hash: '0x', parentHash: '0x', timestampSec: 0 }) as const
const view = (finalized?: ChainView['finalized']): ChainView => ({ head: header(100), finalized })

describe('the last final block', () => {
  it('is the node’s finalized block, but not above its head', () => {
    expect(finality.finalBlock(view(header(90)), 0)).toBe(90)
    expect(finality.finalBlock(view(header(200)), 0)).toBe(100)
    expect(finality.hasTag()).toBe(true)
  })

  it('is at the depth where the node has no finalized block, or was not asked', () => {
    expect(finality.finalBlock(view('NONE'), 0)).toBe(70)
    expect(finality.finalBlock(view(), 0)).toBe(70)
  })

  it.each<[string, 'NONE' | 'UNANSWERED', hasTag: boolean]>([
    ['a node fails to answer', 'UNANSWERED', false],
    ['a node that answered before fails to', 'UNANSWERED', true],
    ['a node that answered before now has none', 'NONE', true],
  ])('stays where %s, and is at the depth after ten minutes, which is logged once', (_, answer, hasTag) => {
    finality.recall(hasTag)
    for (const seconds of [0, 1, 599]) {
      nowMs = seconds * 1_000
      expect(finality.finalBlock(view(answer), 42)).toBe(42)
    }
    expect(logs.records).toEqual([])
    for (const seconds of [600, 601]) {
      nowMs = seconds * 1_000
      expect(finality.finalBlock(view(answer), 42)).toBe(70)
    }
    expect(logs.records).toHaveLength(1)
  })

  it('waits another ten minutes after the node answered again', () => {
    finality.finalBlock(view(header(90)), 0)
    finality.finalBlock(view('NONE'), 42)
    nowMs = 599_000
    finality.finalBlock(view(header(90)), 42)
    nowMs = 601_000
    expect(finality.finalBlock(view('NONE'), 42)).toBe(42)
  })
})
