import { defineConfig } from 'vitest/config'
import { PATIENCE } from './test/support/patience.ts'

/** Tests that run for minutes or need programs that not every machine has: `npm run test:long`. */
const longTests = 'test/long/**/*.test.ts'
/** Tests of functions: they start and leave nothing, so that a worker can run many files and load each module once. */
const unit = { name: 'unit', include: ['src/**/*.test.ts', 'tools/**/*.test.ts'], isolate: false }
/** Tests with a database, a chain or a port: one process a file. */
const whole = { name: 'whole', include: ['test/**/*.test.ts'], exclude: [longTests] }
const long = { name: 'long', include: [longTests] }

export default defineConfig(({ mode }) => ({
  test: {
    // Two files at once even on two cores, because tests mostly wait for processes, chains and leases.
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
