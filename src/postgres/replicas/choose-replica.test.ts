import { describe, expect, test } from 'vitest'
import { waybillError } from '../../errors/waybill-error.ts'
import { chooseServer, isWithinLag, judgeReplicaError, withMoment } from './choose-replica.ts'

describe('the server of a read', () => {
  const a = { replica: 'a', replayed: 100n }
  const b = { replica: 'b', replayed: 200n }
  const c = { replica: 'c', replayed: 200n }

  test.each([
    ['the primary without replicas', [], 0n, 1, { kind: 'primary' }],
    ['a replica for an account that has seen nothing', [a], 0n, 1, { kind: 'replica', replica: 'a' }],
    ['a replica that has replayed just what was seen', [a], 100n, 1, { kind: 'replica', replica: 'a' }],
    ['the replica that is far enough', [a, b], 150n, 2, { kind: 'replica', replica: 'b' }],
    ['the first of the turn', [a, b, c], 0n, 3, { kind: 'replica', replica: 'a' }],
    ['the next one with the next turn', [a, b, c], 0n, 4, { kind: 'replica', replica: 'b' }],
    ['the next one that is far enough', [a, b, c], 150n, 6, { kind: 'replica', replica: 'b' }],
    ['a look at the first of the turn where none is far enough', [a, b], 201n, 3, { kind: 'look', replica: 'b' }],
  ])('is %s', (_, usable, needed, turn, choice) => {
    expect(chooseServer(usable, { needed, turn })).toEqual(choice)
  })
})

describe('the lag of a replica', () => {
  const history = [
    { atMs: 1_000, position: 10n },
    { atMs: 2_000, position: 20n },
  ]

  test.each([
    [20n, 2_000, true],
    [19n, 1_000, true],
    [19n, 1_001, false],
    [9n, 0, false],
    [20n, 2_001, false],
  ])('a replica at %s is within the lag since %s ms: %s', (replayed, sinceMs, expected) => {
    expect(isWithinLag(history, replayed, sinceMs)).toBe(expected)
  })

  test('moments older than the lag are dropped', () => {
    const moment = { atMs: 2_500, position: 30n }
    expect(withMoment(history, moment, 1_000)).toEqual([history[1], moment])
  })
})

test.each([
  ['an error of the database', new Error('connection lost'), undefined, 'ask primary'],
  ['an error of the database, signal not fired', new Error('x'), new AbortController().signal, 'ask primary'],
  ['a refusal', waybillError('PAYMENT_NOT_FOUND', { value: 'x' }), undefined, 'refused'],
  ['any error once the caller has left', new Error('x'), AbortSignal.abort(), 'cancelled'],
  ['a refusal once the caller has left', waybillError('CURSOR_EXPIRED', {}), AbortSignal.abort(), 'cancelled'],
])('what follows %s on a replica', (_, error, signal, verdict) => {
  expect(judgeReplicaError(error, signal)).toBe(verdict)
})
