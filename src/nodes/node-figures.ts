/** What a process knows of one URL of a chain, for operators. Nothing in it is secret. */
export interface NodeFigures {
  /** The chain's name. */
  readonly chain: string
  /** The host of the URL; the rest may hold a key. Two URLs of a chain may have the same host. */
  readonly host: string
  /** Its place among the chain's `rpcUrls`, from 0. */
  readonly place: number
  /** Calls that were sent, and how many of them failed, by method, since the process began. A call that the contract reverted has not failed. */
  readonly calls: Readonly<Record<string, CallCount>>
  /** HTTP requests since the process began. */
  readonly requests: number
  /** Requests are kept below this rate. Absent: none is known. */
  readonly rate?: NodeRate | undefined
  /** What is left of the daily budget, in `rate.unit`. Absent: the chains file sets none. */
  readonly budgetLeft?: number | undefined
  /** Until when nothing is sent, because the node asked for that or its daily budget is used up: milliseconds since 1970. Absent: it may be asked now. */
  readonly pausedUntilMs?: number | undefined
  /** Blocks in one call for logs, as learned; absent before the first. */
  readonly logRange?: number | undefined
  /** Calls in one HTTP request, as declared or learned. 1: it takes no batches. */
  readonly batchSize: number
  /** OPEN: it failed, and routes, detection or both leave it alone for now. */
  readonly breaker: 'CLOSED' | 'OPEN'
}

export interface CallCount {
  readonly calls: number
  readonly errors: number
}

/** A rate in requests or calls a second. */
export interface NodeRate {
  readonly perSecond: number
  /** What the node counts: HTTP requests, or each call of a batch. */
  readonly unit: 'REQUESTS' | 'CALLS'
  /** Whether the chains file states it; otherwise it was learned from refusals. */
  readonly isDeclared: boolean
}
