import type { Knex } from 'knex'
import pg from 'pg'
import { untilAborted, within } from '../domain/within.ts'
import { NoAnswerError } from './database-error.ts'
import type { SessionClient } from './session.ts'

/** pg's connection; its types leave these out. */
interface CancelConnection extends pg.Connection {
  connect(port: number | string, host?: string): void
  requestSsl(): void
  cancel(processID: number, secretKey: number): void
}

/** The parts of Knex's client that its types leave out. */
interface KnexClient {
  acquireConnection(): Promise<SessionClient>
  releaseConnection(connection: SessionClient): Promise<void>
}

/** Pause between two cancels, in ms. A cancel that arrives between two statements does nothing, so it is repeated until the work ends. */
const CANCEL_EVERY_MS = 250

/** How long the server may take to end a statement that was cancelled or has failed. Then its connection is broken off instead. */
const CANCEL_TIMEOUT_MS = 2_000

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

/** When a prompt read is asked again, in milliseconds: later each time, so that a database that is merely slow is not asked much more. */
const ASK_AGAIN_AFTER_MS = [250, 500, 1_000]

/**
 * Reads something small for which many callers wait. Where no answer comes, it is asked again on another connection, up to four in all; the first
 * outcome counts, and the others are cancelled. So one connection that hangs holds up nobody for long.
 *
 * @param read - changes nothing; ends when its signal fires
 * @throws NoAnswerError when no outcome has come within the limit
 */
export function readPromptly<T>(read: (signal: AbortSignal) => Promise<T>, limitMs: number): Promise<T> {
  return withLimit(limitMs, (signal) => {
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    signal.addEventListener('abort', () => reject(signal.reason))
    const ask = ([afterMs, ...later]: readonly number[]) => {
      if (signal.aborted) return
      read(signal).then(resolve, reject)
      // an answer that came while this process was busy is read first
      if (afterMs !== undefined) setTimeout(() => setImmediate(ask, later), afterMs).unref()
    }
    ask(ASK_AGAIN_AFTER_MS)
    return promise
  })
}

/**
 * Runs work that a caller waits for no longer than a time.
 *
 * @param work - its signal fires when the time is over, and when the work has an outcome: what it began and did not wait for is then cancelled
 * @throws NoAnswerError when the time is over, even if the work goes on
 */
export async function withLimit<T>(limitMs: number, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const over = new AbortController()
  try {
    return await within(limitMs, work(over.signal), () => {
      throw new NoAnswerError(limitMs)
    })
  } finally {
    over.abort(new NoAnswerError(limitMs))
  }
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
  work: (connection: SessionClient) => Promise<T>,
): Promise<T> {
  const client = knex.client as KnexClient
  const connection = await acquire(client, signal)
  const endCancelling = cancelOnAbort(connection, signal)
  try {
    return await work(connection)
  } catch (error) {
    await untilReady(connection)
    if (signal?.aborted) throw signal.reason
    throw error
  } finally {
    // a cancel still on its way would hit the connection's next user
    await endCancelling()
    // the next user must neither wait for an answer that is overdue nor get an open transaction, where the rollback failed
    const isOpen = !knex.isTransaction && connection.getTransactionStatus() !== 'I'
    if (isOpen || !connection.readyForQuery) connection.breakOff(new NoAnswerError(CANCEL_TIMEOUT_MS))
    await client.releaseConnection(connection)
  }
}

/** Waiting for the pool cannot be cancelled, so a connection that comes after the signal goes back at once. */
async function acquire(client: KnexClient, signal: AbortSignal | undefined): Promise<SessionClient> {
  signal?.throwIfAborted()
  const acquiring = client.acquireConnection()
  if (signal === undefined) return acquiring
  try {
    return await untilAborted(acquiring, signal)
  } catch (error) {
    if (signal.aborted) acquiring.then((late) => client.releaseConnection(late)).catch(() => {})
    throw error
  }
}

/** @returns ends it: call it when the work has ended */
function cancelOnAbort(connection: SessionClient, signal: AbortSignal | undefined): () => Promise<void> {
  const finished = Promise.withResolvers<void>()
  let cancelling: Promise<void> | undefined
  const onAbort = () => {
    cancelling = cancelUntil(finished.promise, connection)
  }
  signal?.addEventListener('abort', onAbort, { once: true })
  return async () => {
    signal?.removeEventListener('abort', onAbort)
    finished.resolve()
    await cancelling
  }
}

/** Cancels what runs on a connection until the work on it has ended. Where the server does not react, the connection is broken off, which ends the work. */
async function cancelUntil(ended: Promise<void>, connection: SessionClient): Promise<void> {
  const tooLong = AbortSignal.timeout(CANCEL_TIMEOUT_MS)
  let hasEnded = false
  while (!hasEnded && !tooLong.aborted) {
    await requestCancel(connection, tooLong).catch(() => {})
    hasEnded = await endsWithin(CANCEL_EVERY_MS, ended)
  }
  if (!hasEnded) connection.breakOff(new NoAnswerError(CANCEL_TIMEOUT_MS))
}

/**
 * Cancels the statement that runs on a client, by a cancel request of the protocol. `pg_cancel_backend` would need a login, and behind a
 * pooler the client does not know which server process works for it.
 *
 * @param signal - gives up waiting
 * @returns when the server has closed the request's connection, which does not tell whether a statement was running
 * @throws the error of the connection
 */
async function requestCancel(client: SessionClient, signal: AbortSignal): Promise<void> {
  const { host, port, ssl, sslNegotiation } = client
  const connection = new pg.Connection({ ssl, sslNegotiation } as object) as unknown as CancelConnection
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const ask = () => connection.cancel(client.processID, client.secretKey)
  connection.on('connect', () => {
    if (!ssl) ask()
    else if (sslNegotiation !== 'direct') connection.requestSsl()
  })
  connection.on('sslconnect', ask)
  connection.on('end', resolve)
  connection.on('error', reject)
  if (host.startsWith('/')) connection.connect(`${host}/.s.PGSQL.${port}`)
  else connection.connect(port, host)
  try {
    await untilAborted(promise, signal)
  } finally {
    connection.stream.destroy()
  }
}

/**
 * Waits until the server is ready, but not for long: it reports an error before it releases the statement's locks and reports the state of the
 * transaction.
 */
export async function untilReady(connection: SessionClient): Promise<void> {
  if (connection.readyForQuery || connection.__knex__disposed !== undefined) return
  const { promise, resolve } = Promise.withResolvers<void>()
  connection.once('drain', resolve)
  connection.once('end', resolve)
  await endsWithin(CANCEL_TIMEOUT_MS, promise)
  connection.off('drain', resolve)
  connection.off('end', resolve)
}

/** Waits for the promise, but no longer than `ms`. @returns whether it has settled */
function endsWithin(ms: number, promise: Promise<void>): Promise<boolean> {
  return within(
    ms,
    promise.then(() => true),
    () => false,
  )
}
