/** What differs between those who ask nodes: routes make few small reads and give up soon, detection reads megabytes of logs. */
export interface NodePolicy {
  /** The largest answer that is read, after decompression. */
  readonly maxAnswerBytes: number
  readonly takesGzip: boolean
  /** For one HTTP request; undefined leaves the time to the caller's signal. */
  readonly timeoutMs?: number | undefined
  /** Requests under way at a time for one question, at a node that takes no batches or only small ones. */
  readonly maxParallelCalls: number
  /** Calls in one HTTP request, where the node takes as many; default what the URL's limits allow. */
  readonly maxBatch?: number | undefined
  /** Whether a batch that is too large is halved. Else it fails as TOO_LARGE, and the caller asks for less. */
  readonly halvesBatches: boolean
  /**
   * Whether JSON-RPC under a 4xx status counts as the answer, and any other body under 4xx as a refusal of the batch: gateways differ in
   * how they refuse single methods. Else all but 200 and the usual refusals of batches mean that the URL does not work.
   */
  readonly reads4xxBodies: boolean
  /** Whether a request waits until the URL's limits allow it. Else the caller has waited, and only what was refused for the rate waits. */
  readonly waitsForTurns: boolean
  /** The longest pause that a question waits for, where the node asks for one. */
  readonly maxWaitMs: number
  /** Called before each HTTP request. */
  readonly onRequest?: (() => void) | undefined
}

export interface AskOptions {
  readonly signal?: AbortSignal | undefined
  /** Whether calls may be sent one by one where the node refuses the batch; default true. Else that fails as TOO_LARGE. */
  readonly mayDivide?: boolean
  /** Default that of the policy. */
  readonly maxWaitMs?: number | undefined
  /** Refusals for the rate in a row, each after a wait, that are taken; default 5. */
  readonly maxFruitless?: number | undefined
}
