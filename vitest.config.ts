import { join } from 'node:path'
import { defineConfig } from 'vitest/config'
import { PATIENCE } from './test/support/patience.ts'

/** Tests that run for minutes or need programs that not every machine has: `npm run test:long`. */
const longTests = 'test/**/*.long.test.ts'
/** Tests that measure the memory of their own process, which other files would change, or that load a module in a changed form. */
const apart = [
  'test/api/auth-limits.test.ts',
  'test/api/hostile-clients.test.ts',
  'test/api/protocols.test.ts',
  'test/search/watch.test.ts',
]

/** `npm run test:postgres` leaves tests out that do not fit the server they run on. */
const leftOut = (process.env.TEST_LEFT_OUT ?? '').split(',').filter((path) => path !== '')

// Projects run in the order of their names, and the longest file of a project first.
const alone = { name: 'alone', include: apart, exclude: leftOut }
/** Tests of functions: they start and leave nothing. */
const unit = {
  name: 'unit',
  include: ['{src,apps,demo,clients/typescript/src,tools,bench}/**/*.test.ts'],
  isolate: false,
}
/**
 * Tests with a database, a chain or a port. A worker runs many files and loads each module once, which saves 0.3 s of a core a file. Each
 * file stops in `afterAll` what it started.
 */
const whole = {
  name: 'whole',
  include: ['test/**/*.test.ts'],
  exclude: [longTests, ...apart, ...leftOut],
  isolate: false,
}
const long = { name: 'long', include: [longTests] }

export default defineConfig(({ mode }) => ({
  resolve: {
    alias: {
      '@waybill/client/wallet': join(import.meta.dirname, 'clients/typescript/src/wallet.ts'),
      '@waybill/client/checkout': join(import.meta.dirname, 'clients/typescript/src/checkout.ts'),
      '@waybill/client': join(import.meta.dirname, 'clients/typescript/src/public.ts'),
    },
  },
  test: {
    // Two files at once even on two cores, because tests mostly wait for processes, chains and leases.
    maxWorkers: 2,
    testTimeout: 20_000,
    hookTimeout: 60_000,
    expect: { poll: PATIENCE },
    // A process that a test starts loads in half the time when the code of its modules is compiled.
    env: { NODE_COMPILE_CACHE: join(import.meta.dirname, 'node_modules/.cache/node-compile') },
    globalSetup: ['test/support/global-setup.ts'],
    // Answers of a service that a test gets are checked against the description of the API.
    setupFiles: ['test/support/described/check-fetch.ts'],
    // `npm run coverage`: of the service, by its unit and integration tests, without the processes that tests start.
    coverage: {
      provider: 'v8',
      include: ['src/**/*.ts'],
      exclude: ['**/*.test.ts', '**/testdata/**'],
      reporter: ['text-summary', 'json-summary'],
      reportOnFailure: true,
    },
    projects: (mode === 'long' ? [long] : [alone, unit, whole]).map((test) => ({ extends: true as const, test })),
  },
}))
