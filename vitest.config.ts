import { defineConfig } from 'vitest/config'
import { PATIENCE } from './test/support/patience.ts'

/** What runs for minutes, or needs what not every machine has: `npm run test:long`. */
const longTests = 'test/long/**/*.test.ts'

export default defineConfig(({ mode }) => ({
  test: {
    include: mode === 'long' ? [longTests] : ['src/**/*.test.ts', 'test/**/*.test.ts', 'tools/**/*.test.ts'],
    exclude: mode === 'long' ? [] : [longTests],
    globalSetup: ['test/support/global-setup.ts'],
    // Most of the time is spent in waiting for processes, chains and leases, so that two files are run at once even on two cores.
    maxWorkers: 2,
    testTimeout: 20_000,
    hookTimeout: 60_000,
    expect: { poll: PATIENCE },
  },
}))
