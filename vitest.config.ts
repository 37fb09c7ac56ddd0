import { defineConfig } from 'vitest/config'
import { PATIENCE } from './test/support/patience.ts'

/** What runs for minutes, or needs what not every machine has: `npm run test:long`. */
const longTests = 'test/long/**/*.test.ts'
/** Tests of functions: they start nothing and leave nothing behind, so that a worker runs many files and loads each module once. */
const unit = { name: 'unit', include: ['src/**/*.test.ts', 'tools/**/*.test.ts'], isolate: false }
/** Tests with a database, a chain or a port: a process each. */
const whole = { name: 'whole', include: ['test/**/*.test.ts'], exclude: [longTests] }
const long = { name: 'long', include: [longTests] }

export default defineConfig(({ mode }) => ({
  test: {
    // Most of the time is spent in waiting for processes, chains and leases, so that two files are run at once even on two cores.
    maxWorkers: 2,
    testTimeout: 20_000,
    hookTimeout: 60_000,
    expect: { poll: PATIENCE },
    projects: (mode === 'long' ? [long] : [unit, whole]).map((test) => ({
      extends: true as const,
      test: test === unit ? test : { ...test, globalSetup: ['test/support/global-setup.ts'] },
    })),
  },
}))
