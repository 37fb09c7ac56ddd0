import { expect, it } from 'vitest'
import { type ChainFacts, NO_REORGS } from '../sql/chain-reports-repository.ts'
import { describeChain } from './list-chains.ts'

const NOW = new Date('2026-03-01T12:00:00Z')
const before = (seconds: number) => new Date(NOW.getTime() - seconds * 1_000)

const heights = { scanned: 97, scannedTime: before(36), head: 100, final: 90 }
const report = {
  process: 'web-1/4711',
  followingSince: '2026-03-01T11:00:00.000Z',
  reorgs: NO_REORGS,
  nodes: [],
  writtenAt: before(2),
}
const trouble = { since: '2026-03-01T11:59:00.000Z', reason: 'HTTP status 502' }
const backfill = { blocksDone: 1, blocksTotal: 2 }

const describe = (facts: Partial<ChainFacts>) =>
  describeChain('BASE', { chainId: 'eip155:8453', isFollowed: true, ...facts }, NOW)

it.each<[state: string, facts: Partial<ChainFacts>]>([
  ['NOT_STARTED', {}],
  ['NOT_STARTED', { isFollowed: false }],
  ['NOT_STARTED', { report }],
  ['FOLLOWING', { heights, report }],
  ['FOLLOWING', { heights: { ...heights, scanned: 90 }, report }],
  ['CATCHING_UP', { heights: { ...heights, scanned: 89 }, report }],
  ['CATCHING_UP', { heights, report: { ...report, backfill } }],
  ['FAILING', { report: { ...report, trouble } }],
  ['FAILING', { heights, report: { ...report, trouble } }],
  ['FAILING', { heights, report: { ...report, trouble }, isFollowed: false }],
  ['NOT_FOLLOWED', { heights, report, isFollowed: false }],
  ['NOT_FOLLOWED', { heights, report: { ...report, trouble, writtenAt: before(31) }, isFollowed: false }],
  ['STOPPED', { heights, report, alarm: 'block 90 was replaced' }],
  ['STOPPED', { heights, report, alarm: 'block 90 was replaced', isFollowed: false }],
])('a chain is %s with %j', (state, facts) => {
  expect(describe(facts).state).toBe(state)
})

it('says since when and why what is stored is not proven', () => {
  const unproven = { since: '2026-03-01T11:50:00.000Z', reason: 'no two nodes agree' }
  const reported = describe({ heights, report: { ...report, unproven } })
  expect(reported).toMatchObject({ state: 'FOLLOWING', unproven: { since: before(600), reason: 'no two nodes agree' } })
})

it('lags by blocks, and by the age of the last block that was read; clocks that differ make neither negative', () => {
  expect(describe({ heights }).lag).toEqual({ blocks: 3, seconds: 36 })
  const ahead = { ...heights, scanned: 101, scannedTime: before(-5) }
  expect(describe({ heights: ahead }).lag).toEqual({ blocks: 0, seconds: 0 })
  expect(describe({}).lag).toBeUndefined()
})

it('says that a report is stale when the process has not written one for 30 seconds', () => {
  const reported = (seconds: number) => describe({ report: { ...report, writtenAt: before(seconds) } }).follower
  expect(reported(30)?.isStale).toBe(false)
  expect(reported(31)).toEqual({
    process: 'web-1/4711',
    since: new Date('2026-03-01T11:00:00Z'),
    reportedAt: before(31),
    isStale: true,
  })
})
