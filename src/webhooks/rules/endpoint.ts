/** Kinds of events, as the `type` of a delivery has them. */
export const eventKinds = ['payment.added', 'payment.updated', 'payment.removed', 'request.updated'] as const
export type EventKind = (typeof eventKinds)[number]

/**
 * Why nothing is sent to an endpoint.
 * - `BY_ACCOUNT`: the account paused it
 * - `RETRIES_EXHAUSTED`: a delivery failed at its last attempt
 * - `GONE`: it answered 410
 * - `INVALID_FILTER`: its filter names what the configuration no longer has
 */
export const pauseReasons = ['BY_ACCOUNT', 'RETRIES_EXHAUSTED', 'GONE', 'INVALID_FILTER'] as const
export type PauseReason = (typeof pauseReasons)[number]

/** Where changes of an account are sent. */
export interface Endpoint {
  readonly accountId: number
  /** UUID. */
  readonly id: string
  readonly url: string
  readonly kinds: readonly EventKind[]
  /** Which payments are meant: a query string, which this module stores and does not read. */
  readonly filter: string
  readonly description?: string | undefined
  readonly createdAt: Date
  /** Of the secret in force. */
  readonly secretNumber: number
  /** Until when the secret before it is valid too. */
  readonly oldSecretUntil?: Date | undefined
  readonly paused?: { readonly at: Date; readonly reason: PauseReason } | undefined
  /** Counts what callers change. */
  readonly generation: number
  /** The last change of the log that is sent, parked or of no interest. */
  readonly position: bigint
  /** Changes that were pruned before they were sent. */
  readonly lostChanges: bigint
  /** How many deliveries have ended. */
  readonly ended: bigint
}

/** Which change is delivered. */
export interface DeliveredChange {
  readonly change: bigint
  readonly at: Date
  readonly kind: EventKind
  /** Id of the payment or request. Deliveries of one subject are in the order of their changes. */
  readonly subject: string
}

/** A change with what is sent of it. */
export interface WebhookEvent extends DeliveredChange {
  /** JSON. */
  readonly data: string
}

/** How an attempt went. `status` is of HTTP; `failure` is absent where it succeeded. */
export interface Outcome {
  readonly status?: number | undefined
  readonly failure?: string | undefined
  /** What Retry-After says. */
  readonly retryAt?: Date | undefined
}

/** A delivery and its last attempt. */
export interface Delivery extends DeliveredChange, Pick<Outcome, 'status' | 'failure'> {
  readonly attempts: number
  readonly attemptedAt?: Date | undefined
  /** When it is tried again; undefined for one that waits behind another of its subject, and for one that has ended. */
  readonly dueAt?: Date | undefined
  readonly state: 'DELIVERED' | 'RETRYING' | 'WAITING'
}
