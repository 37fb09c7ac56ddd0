import { expect, test } from 'vitest'
import { faultOf, type PrimaryHistory, type ServerState } from './read-pools.ts'

const history: PrimaryHistory = [
  { atMs: 1_000, position: 10n, cluster: 'one' },
  { atMs: 2_000, position: 20n, cluster: 'one' },
]
const state: ServerState = { isReplica: true, position: 20n, cluster: 'one', startedAt: 'Monday' }
const LAGS = 'it is not known to be within the lag allowed'
const at = (position: bigint): ServerState => ({ ...state, position })

test.each([
  ['that has replayed all', state, history, 2_000, undefined],
  ['that has replayed more than the primary had then', at(30n), history, 2_000, undefined],
  ['that has replayed what the primary had at the earliest moment allowed', at(10n), history, 1_000, undefined],
  ['that has replayed less since', at(19n), history, 1_001, LAGS],
  ['that has replayed less than the primary ever had', at(9n), history, 0, LAGS],
  ['while the primary has not answered lately', state, history, 2_001, LAGS],
  ['while the primary has never answered', state, [], 0, LAGS],
  ['that does not answer', undefined, history, 0, 'it does not answer'],
  ['that was promoted', { ...state, isReplica: false }, history, 0, 'it is not a replica'],
  ['of another cluster', { ...state, cluster: 'two' }, history, 0, 'it belongs to another database cluster'],
] as const)('a replica %s', (_, seen, moments, sinceMs, fault) => {
  expect(faultOf(seen, moments, sinceMs)).toBe(fault)
})
