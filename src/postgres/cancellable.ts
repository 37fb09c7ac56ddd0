import type { Knex } from 'knex'
import { type CancellableClient, requestCancel } from './cancel-request.ts'

/** The parts of a pg connection from Knex's pool that this file uses. */
export interface PooledConnection extends CancellableClient {
  /** idle, in a transaction, in a failed transaction */
  getTransactionStatus(): 'I' | 'T' | 'E' | null
  /** whether the server has finished everything that was sent */
  readonly readyForQuery: boolean
  end(done: () => void): void
  /** `drain`: the server has finished and nothing is queued; `end`: the connection has ended */
  once(event: 'drain' | 'end', listener: () => void): unknown
  off(event: 'drain' | 'end', listener: () => void): unknown
  /** set on a connection, it keeps Knex's pool from handing it out again */
  __knex__disposed?: unknown
}

/** The parts of Knex's client that its types leave out. */
interface KnexClient {
  acquireConnection(): Promise<PooledConnection>
  releaseConnection(connection: PooledConnection): Promise<void>
}

/** Pause between two cancels, in ms. A cancel that arrives between two statements does nothing, so it is repeated until the work ends. */
const CANCEL_EVERY_MS = 250

/** How long one cancel may take, and how many are sent before the connection is closed instead. */
const CANCEL_TIMEOUT_MS = 2_000
const MAX_CANCELS = 8

/** How long the server may take to report ready after a statement failed. */
const READY_TIMEOUT_MS = 2_000

/**
 * Runs one query; when the signal fires, the server cancels it.
 *
 * Settles when the statement has ended on the server, usually some 10 ms after the signal. The connection then goes back to the pool, or is
 * closed if the server does not react.
 *
 * @param query - a builder or raw query that has not run; do not await it yourself
 * @throws the signal's reason when it fires before the result has come, also while waiting for a connection
 */
export function runCancellable<T>(knex: Knex, query: CancellableQuery<T>, signal: AbortSignal | undefined): Promise<T> {
  return withConnection(knex, signal, async (connection) => await query.connection(connection))
}

/** Knex's builders and raw queries. */
export interface CancellableQuery<T> extends PromiseLike<T> {
  connection(connection: unknown): PromiseLike<T>
}

/** A statement of the transaction failed and the work caught the error. The server would answer COMMIT with a rollback. */
export class TransactionFailedError extends Error {
  override readonly name = 'TransactionFailedError'

  constructor() {
    super(
      'A statement of the transaction failed, so it cannot be committed. Let the failure end the transaction, or use a savepoint.',
    )
  }
}

/**
 * Runs `work` in a transaction: commits when it resolves, rolls back when it rejects. When the signal fires, the running statement is
 * cancelled, later ones soon after they begin, and nothing is committed.
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
        await untilReady(connection)
        // the server would answer COMMIT with a rollback, which Knex reports as success
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
      // where the connection broke, Knex reports the failed rollback and not the error that caused it
      throw failure === undefined ? error : failure.cause
    }
  })
}

/**
 * Runs `work` with a connection of the pool, or with that of the transaction. When the signal fires, the statement running on it is
 * cancelled.
 *
 * @throws what `work` throws; the signal's reason once it has fired
 */
export async function withConnection<T>(
  knex: Knex,
  signal: AbortSignal | undefined,
  work: (connection: PooledConnection) => Promise<T>,
): Promise<T> {
  const client = knex.client as KnexClient
  const connection = await acquire(client, signal)
  const canceller = cancelOnAbort(connection, signal)
  try {
    return await work(connection)
  } catch (error) {
    await untilReady(connection)
    if (signal?.aborted) throw signal.reason
    throw error
  } finally {
    // a cancel still on its way would hit the connection's next user
    await canceller.finish()
    // where the rollback failed, the next user must not get the open transaction
    if (!knex.isTransaction && connection.getTransactionStatus() !== 'I') drop(connection)
    await client.releaseConnection(connection)
  }
}

/** Waiting for the pool cannot be cancelled, so a connection that comes after the signal goes back at once. */
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

function cancelOnAbort(connection: PooledConnection, signal: AbortSignal | undefined) {
  const finished = Promise.withResolvers<void>()
  const state = { done: false }
  let cancelling: Promise<void> | undefined
  const cancelUntilDone = async () => {
    for (let tries = 0; tries < MAX_CANCELS && !state.done; tries++) {
      if (!(await cancelStatement(connection))) break
      await pause(CANCEL_EVERY_MS, finished.promise)
    }
    // the server did not react: closing the connection at least rejects the query
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

/** Whether the server accepted the cancel; it does not tell whether a statement was running. */
async function cancelStatement(connection: PooledConnection): Promise<boolean> {
  try {
    await requestCancel(connection, AbortSignal.timeout(CANCEL_TIMEOUT_MS))
    return true
  } catch {
    return false
  }
}

/** The server reports an error before it releases the statement's locks and reports the state of the transaction. */
async function untilReady(connection: PooledConnection): Promise<void> {
  if (connection.readyForQuery || connection.__knex__disposed !== undefined) return
  const { promise, resolve } = Promise.withResolvers<void>()
  connection.once('drain', resolve)
  connection.once('end', resolve)
  await pause(READY_TIMEOUT_MS, promise)
  connection.off('drain', resolve)
  connection.off('end', resolve)
}

function drop(connection: PooledConnection): void {
  connection.__knex__disposed = 'closed after a cancel or a failed rollback'
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
