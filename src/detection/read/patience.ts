import { within } from '../../domain/within.ts'
import { ignoreRpcError } from '../../nodes/rpc-error.ts'

/** How long to wait for figures that a payment can do without, such as prices and traces. What is not read in time is looked up again later. */
export interface Patience {
  readonly ms: number
  /** Whether to ask a source also while it is left alone because it failed. */
  readonly asksAtRest: boolean
}

/** While a chain is followed: a payment is stored within the step, whatever its figures do. */
export const LIVE: Patience = { ms: 2_000, asksAtRest: false }
/** While final blocks are read, many payments at once. */
export const BACKFILL: Patience = { ms: 10_000, asksAtRest: false }
/** While figures are looked up again: nobody waits for them. */
export const UNHURRIED: Patience = { ms: 20_000, asksAtRest: true }

/** A source of figures that fails or hangs is left alone for this time at first, then twice as long each time. */
const FIRST_REST_MS = 30_000
const MAX_REST_MS = 600_000

/** Makes a source of figures that payments can do without. It has not failed yet. */
export function createOptionalSource(clock: () => Date) {
  let restUntilMs = 0
  let failures = 0
  return {
    /**
     * Reads something, for as long as `patience` lasts. A source that fails or takes longer is then left alone for a while.
     *
     * @returns undefined where it could not be read
     * @throws the signal's reason; errors other than RpcError
     */
    async read<T>(ask: () => Promise<T>, patience: Patience, signal: AbortSignal | undefined): Promise<T | undefined> {
      if (clock().getTime() < restUntilMs && !patience.asksAtRest) return undefined
      const answer = await within(patience.ms, ask(), () => undefined).catch(ignoreRpcError)
      signal?.throwIfAborted()
      failures = answer === undefined ? failures + 1 : 0
      const restMs = failures === 0 ? 0 : Math.min(FIRST_REST_MS * 2 ** (failures - 1), MAX_REST_MS)
      restUntilMs = clock().getTime() + restMs
      return answer
    },
  }
}
