import type { Knex } from 'knex'
import pg from 'pg'
import { cancelUntil, type PooledConnection } from '../cancellable.ts'

/** COPY of any amount of rows, only as fast as the other side takes them. */

/** The parts of a pg connection that this file uses during COPY. */
interface CopyConnection {
  readonly stream: NodeJS.ReadWriteStream & { readonly writableNeedDrain: boolean }
  sendCopyFromChunk(chunk: Buffer): void
  endCopyFrom(): void
  sendCopyFail(message: string): void
}

interface TransactionClient {
  acquireConnection(): Promise<PooledConnection & { query(query: pg.Query): void }>
}

/** Rows of a chunk; a longer row has a chunk of its own. */
const CHUNK_BYTES = 256 * 1024
/** What may wait in memory before the server has to wait. */
const MAX_WAITING = 4

/** The rows of `copy … to stdout` in the text format. A caller that stops early cancels the statement. */
export async function* copyOut(trx: Knex.Transaction, statement: string): AsyncGenerator<Buffer, void> {
  // the client of a transaction gives its own connection, which must not be released
  const connection = await (trx.client as TransactionClient).acquireConnection()
  const query = new CopyOutQuery(statement)
  connection.query(query)
  try {
    for (;;) {
      const chunk = await query.take()
      if (chunk === undefined) return
      yield chunk
    }
  } finally {
    if (!query.hasEnded()) {
      query.discard()
      await cancelUntil(query.ended, connection)
    }
  }
}

class CopyOutQuery extends pg.Query {
  readonly ended: Promise<void>
  #state: 'runs' | 'ended' = 'runs'
  #isDiscarding = false
  #waiting: Buffer[] = []
  #chunk = Buffer.allocUnsafe(CHUNK_BYTES)
  #filled = 0
  #stream: CopyConnection['stream'] | undefined
  #wake = Promise.withResolvers<void>()

  constructor(statement: string) {
    super(statement)
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.ended = promise
    // a failure is thrown by take()
    promise.catch(() => {})
    const callback = (error: Error | null) => {
      this.#state = 'ended'
      this.#flush()
      this.#wake.resolve()
      if (error === null || error === undefined) resolve()
      else reject(error)
    }
    // pg calls it when the query ends; its types leave it out
    Object.assign(this, { callback })
  }

  hasEnded(): boolean {
    return this.#state === 'ended'
  }

  /** pg calls this for each piece, mostly a row, in a buffer that it uses again. */
  handleCopyData({ chunk }: { chunk: Buffer }, { stream }: CopyConnection): void {
    if (this.#isDiscarding) return
    this.#stream = stream
    if (this.#filled + chunk.length > CHUNK_BYTES) this.#flush()
    if (chunk.length > CHUNK_BYTES) this.#waiting.push(Buffer.from(chunk))
    else this.#filled += chunk.copy(this.#chunk, this.#filled)
    if (this.#waiting.length >= MAX_WAITING) stream.pause()
    if (this.#waiting.length > 0) this.#wake.resolve()
  }

  #flush(): void {
    if (this.#filled === 0) return
    this.#waiting.push(this.#chunk.subarray(0, this.#filled))
    this.#chunk = Buffer.allocUnsafe(CHUNK_BYTES)
    this.#filled = 0
  }

  /** @returns undefined at the end */
  async take(): Promise<Buffer | undefined> {
    for (;;) {
      const chunk = this.#waiting.shift()
      if (chunk !== undefined) return chunk
      if (this.#state === 'ended') {
        await this.ended
        return undefined
      }
      this.#wake = Promise.withResolvers<void>()
      this.#stream?.resume()
      await this.#wake.promise
    }
  }

  /** Takes no more rows, so that the statement can end. */
  discard(): void {
    this.#isDiscarding = true
    this.#waiting = []
    this.#filled = 0
    this.#stream?.resume()
  }
}

/** Sends rows in the text format to `copy … from stdin`. @throws what `chunks` throws, or the server's error */
export async function copyIn(trx: Knex.Transaction, statement: string, chunks: AsyncIterable<Buffer>): Promise<void> {
  const connection = await (trx.client as TransactionClient).acquireConnection()
  const query = new CopyInQuery(statement, chunks)
  connection.query(query)
  await query.ended
}

class CopyInQuery extends pg.Query {
  readonly ended: Promise<void>
  readonly #chunks: AsyncIterable<Buffer>
  readonly #failed = new AbortController()
  #failure: { readonly cause: unknown } | undefined

  constructor(statement: string, chunks: AsyncIterable<Buffer>) {
    super(statement)
    this.#chunks = chunks
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.ended = promise
    const callback = (error: Error | null) => {
      this.#failed.abort()
      if (this.#failure !== undefined) reject(this.#failure.cause)
      else if (error === null || error === undefined) resolve()
      else reject(error)
    }
    Object.assign(this, { callback })
  }

  /** pg calls this when the server is ready for rows. */
  handleCopyInResponse(connection: CopyConnection): void {
    this.#send(connection).catch((cause: unknown) => {
      this.#failure = { cause }
      // the server answers with an error, which ends the query
      if (!this.#failed.signal.aborted) connection.sendCopyFail('the rows cannot be read')
    })
  }

  async #send(connection: CopyConnection): Promise<void> {
    for await (const chunk of this.#chunks) {
      if (this.#failed.signal.aborted) return
      connection.sendCopyFromChunk(chunk)
      if (connection.stream.writableNeedDrain) await this.#drained(connection.stream)
    }
    if (!this.#failed.signal.aborted) connection.endCopyFrom()
  }

  /** Waits until the server has taken what was sent, or the query has failed. */
  #drained(stream: CopyConnection['stream']): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    stream.once('drain', resolve)
    this.#failed.signal.addEventListener('abort', () => resolve(), { once: true })
    return promise
  }
}
