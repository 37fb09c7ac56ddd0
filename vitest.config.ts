import { defineConfig } from 'vitest/config'
import { PATIENCE } from './test/support/patience.ts'

export default defineConfig({
  test: {
    include: ['src/**/*.test.ts', 'test/**/*.test.ts', 'tools/**/*.test.ts'],
    globalSetup: ['test/support/global-setup.ts'],
    // Most of the time is spent in waiting for processes, chains and leases, so that two files are run at once even on two cores.
    maxWorkers: 2,
    testTimeout: 20_000,
    hookTimeout: 60_000,
    expect: { poll: PATIENCE },
  },
})
