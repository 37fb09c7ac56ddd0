import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { afterAll, beforeAll, beforeEach, expect, it, vi } from 'vitest'
import { type Descendant, descendantsOf, isAlive, startWaybill, type WaybillProcess } from '../support/process.ts'
import { makeTempFolder } from '../support/temp-folder.ts'

// A stop ends the process and all that it has started, whatever hangs.

let folder: string
let demo: WaybillProcess
let started: Descendant[]

beforeAll(async () => {
  folder = await makeTempFolder('stop')
})
beforeEach(async () => {
  demo = startWaybill(['serve'], { DATA_DIR: join(folder, 'data'), PORT: '0' })
  await demo.says(/Ctrl-C/)
  started = descendantsOf(demo.pid)
})
afterAll(async () => {
  demo?.kill('SIGKILL')
  await demo?.ended
  await rm(folder, { recursive: true, force: true })
})

function allGone(): Promise<void> {
  return vi.waitFor(() => expect(started.filter(isAlive)).toEqual([]), { timeout: 10_000, interval: 20 })
}

const pidOf = (name: string) => started.find((each) => each.name === name)?.pid ?? 0

it('stops in order although a node hangs', async () => {
  process.kill(pidOf('anvil'), 'SIGSTOP')
  // Whatever asks the node each second waits for it now.
  await wait(1_500)
  demo.kill('SIGTERM')
  expect(await demo.ended).toMatchObject({ code: 0, signal: null })
  await allGone()
})

it('ends by force what does not stop within 20 seconds', async () => {
  process.kill(pidOf('postgres'), 'SIGSTOP')
  const startMs = performance.now()
  demo.kill('SIGTERM')
  const { code, stderr } = await demo.ended
  expect([code, stderr]).toEqual([1, expect.stringContaining('the stop took longer than 20 s')])
  expect(performance.now() - startMs).toBeLessThan(25_000)
  await allGone()
})

it('ends by force at the second signal', async () => {
  process.kill(pidOf('postgres'), 'SIGSTOP')
  demo.kill('SIGTERM')
  await demo.says(/stopping: no new calls/, 'stderr')
  demo.kill('SIGTERM')
  expect(await demo.ended).toMatchObject({ code: 143, stderr: expect.stringContaining('SIGTERM during the stop') })
  await allGone()
})
