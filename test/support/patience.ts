/**
 * How long a test waits for something whose time is not what it is about: for most of what a test has. The second that `vi.waitFor`
 * has by itself is gone when the machine pauses. `expect.poll` has it from the configuration.
 */
export const PATIENCE = { timeout: 15_000 }
