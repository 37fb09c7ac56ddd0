import { describe, expect, it } from 'vitest'
import { describeFailures, summarize } from './test-summary.ts'

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

describe('describeFailures', () => {
  it('says of each failed test its file, its name and the beginning of its error, without colours', () => {
    const stack = Array.from({ length: 50 }, (_, n) => `    at line ${n}`)
    const failed = {
      status: 'failed',
      fullName: 'a chain is followed',
      failureMessages: [
        `\u001b[31mError: late\u001b[39m\n    at file:///w/node_modules/vitest/run.js:3:1\n${stack.join('\n')}`,
      ],
    }
    const results = {
      testResults: [
        {
          name: `${process.cwd()}/test/chain.test.ts`,
          status: 'failed',
          assertionResults: [{ status: 'passed', fullName: 'another' }, failed],
        },
        file('passed', 'passed'),
      ],
    }
    expect(describeFailures([{ results, exitCode: 1 }])).toEqual([
      [
        'FAILED test/chain.test.ts: a chain is followed',
        '  Error: late',
        ...stack.slice(0, 11).map((at) => `  ${at}`),
      ].join('\n'),
    ])
  })

  it('says why a file did not load', () => {
    const broken = {
      name: 'test/chain.test.ts',
      status: 'failed',
      message: 'Cannot find ./gone.ts',
      assertionResults: [],
    }
    expect(describeFailures([{ results: { testResults: [broken] }, exitCode: 1 }])).toEqual([
      'FAILED test/chain.test.ts: did not load\n  Cannot find ./gone.ts',
    ])
  })

  it('has nothing to say of runs that passed or wrote no results', () => {
    const passed = { results: { testResults: [file('passed', 'passed', 'skipped')] }, exitCode: 0 }
    expect(describeFailures([passed, { results: undefined, exitCode: 1 }])).toEqual([])
  })
})
