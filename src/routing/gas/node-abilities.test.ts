import { expect, it } from 'vitest'
import { createNodeAbilities } from './gas-meter.ts'

it('forgets what a node can do after an hour, and a suspicion after a minute', () => {
  let nowMs = 0
  const abilities = createNodeAbilities(() => nowMs)
  abilities.noteSimulation({ ok: true, result: [] })
  nowMs = 3_600_000
  abilities.suspect()
  expect(abilities.known().simulates).toBe(true)
  nowMs += 1
  expect(abilities.known().simulates).toBeUndefined()
  abilities.suspect()
  expect(abilities.known().simulates).toBe(false)
  nowMs += 60_001
  expect(abilities.known().simulates).toBeUndefined()
})
