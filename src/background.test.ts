import { expect, it, vi } from 'vitest'
import { recordLogs } from '../test/support/logs.ts'
import { createBackground } from './background.ts'

it('repeats each job, goes on after failures, and warns once of those in a row', async () => {
  const logs = recordLogs()
  const isFailing = [false, true, true, false, true]
  let rounds = 0
  let others = 0
  const background = createBackground(
    [
      {
        name: 'counting',
        everyMs: 1,
        round: async () => {
          if (isFailing[rounds++] === true) throw new Error('no')
        },
      },
      { name: 'other', everyMs: 1, round: async () => others++ },
    ],
    logs,
  )
  background.start()
  background.start()
  await vi.waitFor(() => expect(rounds).toBeGreaterThan(5))
  await background.stop()
  const last = { rounds, others }
  expect(others).toBeGreaterThan(1)
  const failed = 'background work failed: counting; trying again'
  expect(logs.records.map(({ level, message }) => `${level} ${message}`)).toEqual([
    `warn ${failed}`,
    `debug ${failed}`,
    `warn ${failed}`,
  ])
  await new Promise((resolve) => setTimeout(resolve, 10))
  expect({ rounds, others }).toEqual(last)
})

it('aborts a round that runs, ends it without a warning, and can be started again', async () => {
  const logs = recordLogs()
  let ended = 0
  let started = 0
  const round = (signal: AbortSignal) =>
    new Promise((_, reject) => {
      started++
      signal.addEventListener('abort', () => reject(signal.reason as Error))
    })
  const end = async () => {
    ended++
    throw new Error('the database is gone')
  }
  const background = createBackground([{ name: 'waiting', everyMs: 1, round, end }], logs)
  background.start()
  await background.stop()
  await background.stop()
  background.start()
  await background.stop()
  expect({ started, ended }).toEqual({ started: 2, ended: 2 })
  expect(logs.records.filter(({ level }) => level === 'warn')).toEqual([])
})
