import { describe, expect, it } from 'vitest'
import { summarize } from './test-summary.ts'

function file(status: string, ...tests: string[]) {
  return { status, assertionResults: tests.map((test) => ({ status: test })) }
}

describe('summarize', () => {
  it.each([
    ['passed tests', [file('passed', 'passed', 'passed')], 0, '2 passed, 0 failed', false],
    ['a failed test', [file('failed', 'passed', 'failed')], 1, '1 passed, 1 failed', true],
    [
      'skipped and todo tests',
      [file('passed', 'passed', 'skipped', 'todo')],
      0,
      '1 passed, 0 failed, 2 skipped',
      false,
    ],
    ['a file that did not load', [file('failed'), file('passed', 'passed')], 1, '1 passed, 1 failed', true],
    ['an error outside of any test', [file('passed', 'passed')], 1, '1 passed, 1 failed', true],
    ['no tests at all', [], 0, '0 passed, 1 failed', true],
  ])('counts %s', (_name, testResults, exitCode, line, failed) => {
    expect(summarize([{ results: { testResults }, exitCode }])).toEqual({ line, failed })
  })

  it('counts a run without results as failed', () => {
    expect(summarize([{ results: undefined, exitCode: 0 }])).toEqual({ line: '0 passed, 1 failed', failed: true })
  })

  it('adds up the runs, and lets one that passed hide none that failed', () => {
    const passed = { results: { testResults: [file('passed', 'passed')] }, exitCode: 0 }
    expect(summarize([passed, passed])).toEqual({ line: '2 passed, 0 failed', failed: false })
    expect(summarize([passed, { results: undefined, exitCode: 1 }])).toEqual({
      line: '1 passed, 1 failed',
      failed: true,
    })
  })
})
