import { type Payment, WatchPaymentsResponse_Type as Type, type WatchPaymentsResponse } from '@waybill/client'
import { expect, it } from 'vitest'
import { applyChanges, type LiveRows, MAX_ROWS, resume, startRows } from './use-payments.ts'

const payment = (id: string, seconds: number) => ({ id, timestamp: { seconds: BigInt(seconds), nanos: 0 } }) as Payment
const change = (type: Type, { id, ...rest }: { id: string }) =>
  ({ type, id, ...(type !== Type.REMOVED && { payment: { id, ...rest } }) }) as unknown as WatchPaymentsResponse
const idsOf = ({ rows }: LiveRows) => rows.map(({ id }) => id)

const rows = startRows([payment('c', 30), payment('b', 20), payment('a', 10)])
const live = { isTail: true, isPaused: false }
const paused = { isTail: true, isPaused: true }

it('puts a new payment in its place, and an old one nowhere', () => {
  const changes = [payment('e', 40), payment('d', 20), payment('z', 1)].map((each) => change(Type.ADDED, each))
  expect(idsOf(applyChanges(rows, changes, live))).toEqual(['e', 'c', 'd', 'b', 'a'])
})

it('moves nothing while it is paused, counts what comes, and shows it afterwards', () => {
  const changes = Array.from({ length: 50 }, (_, n) => change(Type.ADDED, payment(`n${n}`, 100 + n)))
  const held = applyChanges(rows, changes, paused)
  expect(idsOf(held)).toEqual(['c', 'b', 'a'])
  expect(held.heldCount).toBe(50)
  expect(idsOf(resume(held)).slice(0, 2)).toEqual(['n49', 'n48'])
  expect(idsOf(resume(held))).toHaveLength(53)
})

it('changes a row in its place, paused or not', () => {
  const updated = applyChanges(rows, [change(Type.UPDATED, { ...payment('b', 20), status: 3 } as Payment)], paused)
  expect(updated.rows[1]).toMatchObject({ id: 'b', status: 3 })
})

it('keeps the place of a payment that is gone while somebody reads', () => {
  const removed = [change(Type.REMOVED, payment('b', 20))]
  expect(idsOf(applyChanges(rows, removed, live))).toEqual(['c', 'a'])
  const held = applyChanges(rows, removed, paused)
  expect(idsOf(held)).toEqual(['c', 'b', 'a'])
  expect([...held.gone]).toEqual(['b'])
  expect(idsOf(resume(held))).toEqual(['c', 'a'])
})

it('adds nothing to a later page or another order', () => {
  expect(idsOf(applyChanges(rows, [change(Type.ADDED, payment('e', 40))], { ...live, isTail: false }))).toEqual([
    'c',
    'b',
    'a',
  ])
})

it('does not grow', () => {
  const changes = Array.from({ length: 5_000 }, (_, n) => change(Type.ADDED, payment(`n${n}`, 100 + n)))
  const held = applyChanges(rows, changes, paused)
  expect(held.held).toHaveLength(MAX_ROWS)
  expect(held.heldCount).toBe(5_000)
  expect(applyChanges(rows, changes, live).rows).toHaveLength(MAX_ROWS)
})
