import { AsyncLocalStorage } from 'node:async_hooks'

/** What differs between the callers of nodes: routes make few small reads and give up soon; detection reads megabytes of logs. */
export interface NodePolicy {
  /** The largest answer that is read, after decompression. */
  readonly maxAnswerBytes: number
  /** For one HTTP request; undefined leaves the time to the caller's signal. */
  readonly timeoutMs?: number | undefined
  /** Requests of one question that are under way at a time, where the node takes no batches or only small ones. */
  readonly maxParallelCalls: number
  /**
   * Whether much is read at once. Then gzip is taken; a batch that is too large is halved, where else it fails as TOO_LARGE, and the caller asks for less;
   * and the body of an HTTP error is read, since gateways differ in how they refuse methods, batches and ranges. JSON-RPC under 4xx is then the answer, and
   * any other body under 4xx refuses the batch; a JSON-RPC error under 5xx refuses the batch, or the range of `eth_getLogs`. Where it is not read, a status
   * other than 200 and the usual ones for limits and batches means that the URL does not work.
   */
  readonly isBulk: boolean
  /** Whether each request waits until the URL's limits allow it. If not, the caller has done so, and only calls that were refused for the rate wait. */
  readonly waitsForSlots: boolean
  /** The longest pause that is waited for where the node asks for one; a question that would wait longer fails. */
  readonly maxWaitMs: number
}

export interface AskOptions {
  readonly signal?: AbortSignal | undefined
  /** Whether a batch that the node refuses may be split; default true. If not, the question fails as TOO_LARGE. */
  readonly maySplit?: boolean
  /** Default that of the policy. */
  readonly maxWaitMs?: number | undefined
  /** Rounds in a row, with a wait between them, that may bring nothing but refusals for the rate before the question fails; default 5. */
  readonly maxRefusedRounds?: number | undefined
}

/**
 * The priority of calls at a node that limits them, highest first:
 *
 * - `LIVE`: routes, and following a chain
 * - `BACKFILL`: old blocks, and commands
 * - `ENRICHMENT`: figures that a stored payment can get later, and checks of nodes against each other
 */
export type Lane = 'LIVE' | 'BACKFILL' | 'ENRICHMENT'

const lanes = new AsyncLocalStorage<Lane>()

/** Does work, and puts all calls that it makes to nodes in a lane, however deep in the work they are made. Outside of it, calls are LIVE. */
export function inLane<T>(lane: Lane, work: () => T): T {
  return lanes.run(lane, work)
}

/** The lane of the work that runs now. */
export function currentLane(): Lane {
  return lanes.getStore() ?? 'LIVE'
}
