import { expect, it } from 'vitest'
import { createUnprovenList } from './verify-chain.ts'

it('lists consecutive blocks with the same reason as one, and events once', () => {
  const event = { where: 'event 0 of 0xaa', why: 'no node traces it' }
  const unproven = createUnprovenList()
  unproven.add(
    [
      { block: 1, why: 'no root' },
      { block: 2, why: 'a.example lied', isInfo: true },
      { block: 2, why: 'no root' },
    ],
    [event],
  )
  unproven.add(
    [3, 5].map((block) => ({ block, why: 'no root' })),
    [{ ...event }],
  )
  expect(unproven.list()).toEqual([
    { where: 'blocks 1 to 3', why: 'no root' },
    { where: 'block 2', why: 'a.example lied', isInfo: true },
    { where: 'block 5', why: 'no root' },
    event,
  ])
})
