import pg from 'pg'

/** The parts of a connected pg client that a cancel needs. */
export interface CancellableClient {
  readonly processID: number
  readonly secretKey: number
  readonly host: string
  readonly port: number
  readonly ssl: boolean | object
  readonly sslNegotiation: string
}

/** pg's connection; its types leave these out. */
interface CancelConnection {
  connect(port: number | string, host?: string): void
  requestSsl(): void
  cancel(processID: number, secretKey: number): void
  on(event: 'connect' | 'sslconnect' | 'end', listener: () => void): void
  on(event: 'error', listener: (error: Error) => void): void
  readonly stream: { destroy(): void }
}

/**
 * Cancels the statement that runs on a client, by a cancel request of the protocol. `pg_cancel_backend` would need a login, and behind a
 * pooler the client does not know which server process works for it.
 *
 * @param signal - gives up waiting
 * @returns when the server has closed the request's connection, which does not tell whether a statement was running
 * @throws the error of the connection
 */
export async function requestCancel(client: CancellableClient, signal: AbortSignal): Promise<void> {
  const { host, port, ssl, sslNegotiation } = client
  const connection = new pg.Connection({ ssl, sslNegotiation } as object) as unknown as CancelConnection
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const stop = () => reject(signal.reason)
  signal.addEventListener('abort', stop, { once: true })
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
    await promise
  } finally {
    signal.removeEventListener('abort', stop)
    connection.stream.destroy()
  }
}
