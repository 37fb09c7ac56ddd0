/**
 * How long a test waits for a result whose duration it does not test. The default of `vi.waitFor`, a second, is too short when the machine
 * pauses. The configuration sets it for `expect.poll`.
 */
export const PATIENCE = { timeout: 15_000 }
