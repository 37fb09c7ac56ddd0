import { expect, it } from 'vitest'
import { createRoster } from './roster.ts'

it('knows who is there in the order in which they came, whoever leaves', () => {
  const roster = createRoster<number>()
  const there = new Map<number, () => void>()
  const gone: (() => void)[] = []
  let seed = 7
  for (let n = 0; n < 2_000; n++) {
    seed = (seed * 48_271) % 2_147_483_647
    const member = seed % 50
    const leave = there.get(member)
    if (leave === undefined) there.set(member, roster.join(member))
    else {
      leave()
      there.delete(member)
      gone.push(leave)
    }
    // Who has left may say so again, also when others have come since.
    gone[seed % (gone.length + 1)]?.()
    expect(roster.size()).toBe(there.size)
    expect(roster.members()).toEqual([...there.keys()])
    expect(roster.first()).toBe(roster.members()[0])
  }
})
