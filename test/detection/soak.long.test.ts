import { describe, expect, it } from 'vitest'
import { runProgram } from '../support/process.ts'
import type { SoakSummary } from './soak/run-soak.ts'

describe('a soak', () => {
  it('of some seconds ends with what the chains say, and every answer on the way was a state that some chain had', async () => {
    const ended = await runProgram('tools/soak.ts', ['--seed', '17', '--minutes', '0.15'])
    const summary = JSON.parse(ended.stdout.trim().split('\n').at(-1) ?? '') as SoakSummary
    expect([summary.differences, ended.code, ended.stderr]).toEqual([0, 0, expect.any(String)])
    expect(summary.payments).toBeGreaterThan(20)
    expect(summary.answers).toBeGreaterThan(50)
    expect(summary.watched).toBeGreaterThan(20)
    expect(summary.reorgs).toBeGreaterThan(0)
    expect(summary.nodeFaults).toBeGreaterThan(0)
    expect(summary.kills.service).toBeGreaterThan(0)
  }, 90_000)
})
