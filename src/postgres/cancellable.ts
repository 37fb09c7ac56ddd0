import type { Knex } from 'knex'

/** What this file uses of a connection of pg, as Knex's pool hands it out. */
export interface PooledConnection {
  /** pid of the server's process */
  readonly processID: number
  /** idle, in a transaction, in a failed one */
  getTransactionStatus(): 'I' | 'T' | 'E' | null
  /** whether the server has said that it is through with all that was sent */
  readonly readyForQuery: boolean
  end(done: () => void): void
  /** `drain`: the server is through and nothing more is to be sent; `end`: it is gone */
  once(event: 'drain' | 'end', listener: () => void): unknown
  off(event: 'drain' | 'end', listener: () => void): unknown
  /** Knex's mark of a connection that the pool is not to hand out again */
  __knex__disposed?: unknown
}

/** What this file uses of Knex's client, which its types leave out. */
interface KnexClient {
  acquireConnection(): Promise<PooledConnection>
  releaseConnection(connection: PooledConnection): Promise<void>
  cancelQuery(connection: PooledConnection): Promise<unknown>
}

/** How often a cancel is sent until the work has ended: one that meets no running statement does nothing, in ms. */
const CANCEL_EVERY_MS = 250

/** How long one cancel may take, and how many are sent, before the connection is broken off instead. */
const CANCEL_WITHIN_MS = 2_000
const CANCEL_TRIES = 8

/** How long the server may take to say that it is through with a statement that has failed. */
const THROUGH_WITHIN_MS = 2_000

/**
 * Runs one query, and has the server cancel it when the signal fires.
 *
 * Settles when the statement has ended on the server, normally some 10 ms after the signal; the connection goes back to the pool
 * sound, or is dropped if the server no longer listens.
 *
 * @param query - a builder or raw query that has not run; do not await it yourself
 * @throws the signal's reason when it fired before the answer was there, also while waiting for a connection
 */
export function runCancellable<T>(knex: Knex, query: CancellableQuery<T>, signal: AbortSignal | undefined): Promise<T> {
  return withConnection(knex, signal, async (connection) => await query.connection(connection))
}

/** Knex's builders and raw queries. */
export interface CancellableQuery<T> extends PromiseLike<T> {
  connection(connection: unknown): PromiseLike<T>
}

/** A statement failed inside the transaction and the failure was caught, so the server would roll back what seems done. */
export class TransactionFailedError extends Error {
  override readonly name = 'TransactionFailedError'

  constructor() {
    super(
      'A statement of the transaction failed, so it cannot be committed. Let the failure end the transaction, or use a savepoint.',
    )
  }
}

/**
 * Runs `work` in a transaction: commits when it resolves, rolls back when it rejects. When the signal fires, the statement
 * running is cancelled, later ones soon after they begin, and nothing is committed.
 *
 * @throws what `work` throws; the signal's reason; TransactionFailedError when `work` went on after a failed statement
 */
export function inTransaction<T>(
  knex: Knex,
  signal: AbortSignal | undefined,
  work: (trx: Knex.Transaction) => Promise<T>,
  config: Omit<Knex.TransactionConfig, 'connection'> = {},
): Promise<T> {
  return withConnection(knex, signal, async (connection) => {
    let failure: { cause: unknown } | undefined
    const guarded = async (trx: Knex.Transaction) => {
      try {
        const result = await work(trx)
        signal?.throwIfAborted()
        await untilThrough(connection)
        // the server answers COMMIT with a rollback then, which Knex takes for success
        if (connection.getTransactionStatus() === 'E') throw new TransactionFailedError()
        return result
      } catch (cause) {
        failure = { cause }
        throw cause
      }
    }
    try {
      return await knex.transaction(guarded, { ...config, connection })
    } catch (error) {
      // where the connection broke, Knex reports the rollback that failed, and not what it was for
      throw failure === undefined ? error : failure.cause
    }
  })
}

/**
 * Runs `work` with a connection of the pool, or the transaction's own; what runs on it when the signal fires is cancelled.
 *
 * @throws what `work` throws; the signal's reason when it fired before
 */
export async function withConnection<T>(
  knex: Knex,
  signal: AbortSignal | undefined,
  work: (connection: PooledConnection) => Promise<T>,
): Promise<T> {
  const client = knex.client as KnexClient
  const connection = await acquire(client, signal)
  const canceller = cancelOnAbort(client, connection, signal)
  try {
    return await work(connection)
  } catch (error) {
    await untilThrough(connection)
    if (signal?.aborted) throw signal.reason
    throw error
  } finally {
    // not before the last cancel is through: it would hit the connection's next user
    await canceller.finish()
    // a rollback that did not get through must not leave its transaction to the next user
    if (!knex.isTransaction && connection.getTransactionStatus() !== 'I') drop(connection)
    await client.releaseConnection(connection)
  }
}

/** A wait for the pool cannot be taken back, so a connection that comes too late goes back at once. */
async function acquire(client: KnexClient, signal: AbortSignal | undefined): Promise<PooledConnection> {
  signal?.throwIfAborted()
  const acquiring = client.acquireConnection()
  if (signal === undefined) return acquiring
  const { promise: aborted, reject } = Promise.withResolvers<never>()
  const onAbort = () => reject(signal.reason)
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    return await Promise.race([acquiring, aborted])
  } catch (error) {
    if (signal.aborted) acquiring.then((late) => client.releaseConnection(late)).catch(() => {})
    throw error
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}

function cancelOnAbort(client: KnexClient, connection: PooledConnection, signal: AbortSignal | undefined) {
  const finished = Promise.withResolvers<void>()
  const state = { done: false }
  let cancelling: Promise<void> | undefined
  const cancelUntilDone = async () => {
    for (let tries = 0; tries < CANCEL_TRIES && !state.done; tries++) {
      if (!(await cancelStatement(client, connection))) break
      await pause(CANCEL_EVERY_MS, finished.promise)
    }
    // this ends the query here at least
    if (!state.done) drop(connection)
  }
  const onAbort = () => {
    cancelling = cancelUntilDone()
  }
  signal?.addEventListener('abort', onAbort, { once: true })
  const finish = async () => {
    state.done = true
    signal?.removeEventListener('abort', onAbort)
    finished.resolve()
    await cancelling
  }
  return { finish }
}

/** Says whether the server took the cancel; not whether there was anything to cancel. */
async function cancelStatement(client: KnexClient, connection: PooledConnection): Promise<boolean> {
  const cancelling = client.cancelQuery(connection).then(
    () => true,
    () => false,
  )
  return (await pause(CANCEL_WITHIN_MS, cancelling)) ?? false
}

/** A failure is told before the server lets go of what the statement held and says what it makes of the transaction. */
async function untilThrough(connection: PooledConnection): Promise<void> {
  if (connection.readyForQuery || connection.__knex__disposed !== undefined) return
  const { promise, resolve } = Promise.withResolvers<void>()
  connection.once('drain', resolve)
  connection.once('end', resolve)
  await pause(THROUGH_WITHIN_MS, promise)
  connection.off('drain', resolve)
  connection.off('end', resolve)
}

function drop(connection: PooledConnection): void {
  connection.__knex__disposed = 'broken off'
  connection.end(() => {})
}

/** Waits for the promise, but no longer than `ms`; undefined when it took longer. */
async function pause<T>(ms: number, promise: Promise<T>): Promise<T | undefined> {
  const { promise: elapsed, resolve } = Promise.withResolvers<undefined>()
  const timer = setTimeout(resolve, ms)
  try {
    return await Promise.race([promise, elapsed])
  } finally {
    clearTimeout(timer)
  }
}
