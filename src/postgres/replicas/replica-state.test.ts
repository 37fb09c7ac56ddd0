import { expect, test } from 'vitest'
import {
  afterFailure,
  afterLook,
  afterLoss,
  afterSuccess,
  judgeLook,
  type ReplicaState,
  replayedOf,
  UNKNOWN_REPLICA,
} from './replica-state.ts'

const look = { position: 7n, cluster: 'one', startedAt: 'Monday' }
const found = afterLook(UNKNOWN_REPLICA, look)
const failed = (times: number, nowMs = 0): ReplicaState =>
  Array.from({ length: times }).reduce<ReplicaState>((state) => afterFailure(state, nowMs), found)

test.each([
  ['before the first look', UNKNOWN_REPLICA, 0, undefined],
  ['after a look', found, 0, 7n],
  ['after a later look', afterLook(found, { ...look, position: 9n }), 0, 9n],
  ['when it is lost', afterLoss(found), 0, undefined],
  ['just before the end of its rest', failed(1), 999, undefined],
  ['at the end of its rest', failed(1), 1_000, 7n],
  ['within the longer rest of a second failure', failed(2), 1_999, undefined],
  ['after the longer rest of a second failure', failed(2), 2_000, 7n],
  ['within the longest rest', failed(20), 29_999, undefined],
  ['after the longest rest', failed(20), 30_000, 7n],
  ['after the first rest where a success came between', afterFailure(afterSuccess(failed(5)), 0), 1_000, 7n],
])('a replica %s', (_, state, nowMs, replayed) => {
  expect(replayedOf(state, nowMs)).toBe(replayed)
})

test.each([
  ['the first answer', UNKNOWN_REPLICA, 'found'],
  ['an answer after a loss', afterLoss(found), 'found'],
  ['an answer of the same server', found, 'same'],
  ['an answer of a server started later', afterLook(found, { ...look, startedAt: 'Sunday' }), 'restarted'],
])('%s', (_, state, verdict) => {
  expect(judgeLook(state, look)).toBe(verdict)
})
