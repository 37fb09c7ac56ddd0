import { Writable } from 'node:stream'
import { stripVTControlCharacters } from 'node:util'
import { describe, expect, it } from 'vitest'
import type { ListedChain } from '../../detection/report/list-chains.ts'
import { drawChains } from './chains-table.ts'

const now = new Date('2026-03-01T12:00:00Z')
const before = (seconds: number) => new Date(now.getTime() - seconds * 1_000)

const base: ListedChain = {
  network: 'BASE',
  chainId: 'eip155:8453',
  state: 'CATCHING_UP',
  heights: { scanned: 21_000_000, scannedTime: before(36), head: 21_000_003, final: 20_999_990 },
  lag: { blocks: 3, seconds: 36 },
  reorgs: { count: 2, deepest: 3 },
  backfill: { blocksDone: 41, blocksTotal: 100, blocksPerSecond: 12_300.4, secondsLeft: 11_410 },
  nodes: [
    {
      host: 'base.example.com',
      calls: { eth_getLogs: { calls: 1_200, errors: 5 }, eth_getBlockByNumber: { calls: 34, errors: 0 } },
      requests: 300,
      rate: { perSecond: 25, unit: 'REQUESTS', isDeclared: false },
      budgetLeft: 90_000,
      logRange: 1,
      batchSize: 1,
      breaker: 'CLOSED',
    },
  ],
  suspects: [],
  listChangedAt: before(90_000),
  follower: { process: 'web-1/4711', since: before(7_260), reportedAt: before(2), isStale: false },
  unmatched: [
    { reason: 'NOT_FROM_PAYEE', events: 2 },
    { reason: 'UNKNOWN_TOPIC', events: 1_000 },
  ],
  unpricedPayments: 1,
}
const stopped: ListedChain = {
  network: 'ARBITRUM',
  chainId: 'eip155:42161',
  state: 'STOPPED',
  alarm: 'block 7 was \x1b[31mreplaced',
  trouble: { since: before(90), reason: 'HTTP status 502' },
  unproven: { since: before(600), reason: 'no two nodes agree' },
  nodes: [
    { host: 'a.example', calls: {}, requests: 0, batchSize: 1, breaker: 'OPEN' },
    {
      host: 'b.example',
      calls: {},
      requests: 0,
      batchSize: 1,
      breaker: 'CLOSED',
      pausedUntilMs: now.getTime() + 4_500,
    },
  ],
  suspects: [{ host: 'a.example', reason: 'it left out logs of block 5', at: '2026-03-01T11:00:00Z' }],
  follower: { process: 'web-2/1', since: before(60), reportedAt: before(95), isStale: true },
  unmatched: [],
}

const draw = (stream?: Writable) => drawChains([base, stopped], now, stream)

describe('the table of chains', () => {
  it('has a line a chain, and below it what there is to say, the most urgent first', () => {
    expect(draw()).toEqual([
      'CHAIN     STATE        LAG                 READ      HEAD     FINAL  REORGS',
      'BASE      catching up  3 blocks, 36 s  21000000  21000003  20999990  2, up to 3',
      '  back-fill 41 % · 12,300 blocks/s · 3 h 11 min left',
      '  base.example.com: in use · 1,234 calls · 5 errors (eth_getLogs) · learned 25 requests/s · 90,000 left today · 1 block a call',
      '  screening list last changed 25 h 0 min ago',
      '  followed by web-1/4711 for 2 h 1 min',
      '  unmatched: 1,000 UNKNOWN_TOPIC, 2 NOT_FROM_PAYEE · 1 payment without a price',
      'ARBITRUM  STOPPED      -                      -         -         -  -',
      '  stopped: block 7 was  [31mreplaced',
      '  failing for 2 min: HTTP status 502',
      '  unproven for 10 min: no two nodes agree',
      '  the last report is 2 min old',
      '  suspect a.example: it left out logs of block 5',
      '  a.example: left alone · 0 calls',
      '  b.example: paused for 5 s · 0 calls',
      '  followed by web-2/1 for 1 min',
    ])
  })

  it('does not count blocks to the head of a chain that cannot be read', () => {
    const failing = { ...base, state: 'FAILING' as const }
    expect(drawChains([failing], now)[1]).toMatch(/^BASE {3}failing {2}36 s {2}21000000/)
  })

  it('says of a suspect that it is asked last', () => {
    const suspects = [{ host: 'base.example.com', reason: 'its block 318 is another', at: '2026-03-01T11:00:00Z' }]
    const [, , suspect, , node] = drawChains([{ ...base, suspects }], now)
    expect(suspect).toBe('  suspect base.example.com: its block 318 is another')
    expect(node).toMatch(/com: asked last · /)
  })

  it('says until when a node waits whose daily budget is used up', () => {
    const [node] = base.nodes
    const pausedUntilMs = Date.parse('2026-03-02T00:00:00Z')
    const waiting = { ...base, nodes: node === undefined ? [] : [{ ...node, budgetLeft: 0, pausedUntilMs, calls: {} }] }
    const lines = drawChains([waiting], now)
    expect(lines[3]).toBe(
      '  base.example.com: daily budget used up, waits until 00:00 UTC (12 h 0 min) · 0 calls · learned 25 requests/s · 1 block a call',
    )
  })

  it('has no control characters without colour', () => {
    expect(draw().join('')).not.toMatch(/\p{Cc}/u)
    const coloured = draw(Object.assign(new Writable(), { isTTY: true }))
    expect(coloured.join('')).toContain('\x1b[31m')
    expect(coloured.map((line) => stripVTControlCharacters(line))).toEqual(draw())
  })
})
