/** pg's writer of the extended query protocol. */
interface Wire {
  readonly stream: { cork(): void; uncork(): void }
  parse(statement: { name: string; text: string }): void
  bind(portal: { statement: string; values: readonly ParameterText[] }): void
  execute(portal: { portal: string; rows: number }): void
  close(statement: { type: 'S'; name: string }): void
  sync(): void
  sendCopyFail(message: string): void
}

/** What pg calls on an object that is given to `client.query`. */
interface Submittable {
  /** Of the first statement. */
  readonly text: string
  submit(wire: Wire): void
  handleDataRow(message: { readonly fields: TextRow }): void
  handleCommandComplete(): void
  handleEmptyQuery(): void
  handlePortalSuspended(): void
  handleCopyInResponse(wire: Wire): void
  handleCopyData(): void
  handleReadyForQuery(): void
  handleError(error: unknown): void
}

/** The columns of a row as the texts that PostgreSQL sends; a bytea is `\x` and hex digits. */
export type TextRow = readonly (string | null)[]

export interface WireStatement {
  /** Empty for a statement that is not kept. */
  readonly name: string
  readonly text: string
  readonly parameters: readonly ParameterText[]
  /** Whether it has to be parsed first. */
  readonly parse: boolean
}

/**
 * Sends statements in one write and reads the rows of each. It leaves out what pg's queries do beside: events, descriptions of columns, an object for
 * each row.
 *
 * @param closed - names of statements that the server may drop first; unknown names do no harm
 * @throws the server's error of the first statement that fails; later ones did not run
 */
export function sendBatch(
  connection: { query(query: Submittable): void },
  statements: readonly WireStatement[],
  closed: readonly string[],
): Promise<TextRow[][]> {
  const { promise, resolve, reject } = Promise.withResolvers<TextRow[][]>()
  const results: TextRow[][] = statements.map(() => [])
  let at = 0
  const complete = () => {
    at++
  }
  connection.query({
    text: statements[0]?.text ?? '',
    submit: (wire) => submit(wire, statements, closed),
    handleDataRow: ({ fields }) => {
      results[at]?.push(fields)
    },
    handleCommandComplete: complete,
    handleEmptyQuery: complete,
    handlePortalSuspended: complete,
    handleCopyInResponse: (wire) => wire.sendCopyFail('COPY is not supported in a prepared statement'),
    handleCopyData() {},
    handleReadyForQuery: () => resolve(results),
    handleError: reject,
  })
  return promise
}

function submit(wire: Wire, statements: readonly WireStatement[], closed: readonly string[]): void {
  wire.stream.cork()
  for (const name of closed) wire.close({ type: 'S', name })
  for (const { name, text, parameters, parse } of statements) {
    if (parse) wire.parse({ name, text })
    wire.bind({ statement: name, values: parameters })
    wire.execute({ portal: '', rows: 0 })
  }
  wire.sync()
  wire.stream.uncork()
}

/** A parameter as it is sent to the server. */
export type ParameterText = string | Buffer | null

/**
 * Encodes a parameter: arrays as array literals, dates in UTC, bytes unchanged, other objects as JSON. (pg's own encoder writes dates in
 * the machine's time zone.)
 *
 * @throws TypeError for undefined
 */
export function toParameter(value: unknown): ParameterText {
  if (typeof value === 'string' || value === null) return value
  if (typeof value === 'number' || typeof value === 'bigint' || typeof value === 'boolean') return String(value)
  if (typeof value !== 'object') throw new TypeError(`a parameter cannot be ${typeof value}`)
  if (value instanceof Uint8Array) return toBuffer(value)
  if (value instanceof Date) return value.toISOString()
  return Array.isArray(value) ? arrayLiteral(value) : JSON.stringify(value)
}

function toBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

function arrayLiteral(values: readonly unknown[]): string {
  return `{${values.map(arrayElement).join(',')}}`
}

function arrayElement(value: unknown): string {
  if (Array.isArray(value)) return arrayLiteral(value)
  const text = toParameter(value)
  if (text === null) return 'NULL'
  // within an array literal a backslash is escaped by another
  if (typeof text !== 'string') return `"\\\\x${text.toString('hex')}"`
  return `"${text.replace(/[\\"]/g, '\\$&')}"`
}
