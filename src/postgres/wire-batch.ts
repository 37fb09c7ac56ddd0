import type { ParameterText } from './parameters.ts'

/** The parts of a pg client that this file uses. */
export interface PgConnection {
  query(query: Submittable): void
  getTransactionStatus(): 'I' | 'T' | 'E' | null
  getTypeParser(oid: number, format: 'text'): (text: string) => unknown
}

/** pg's writer of the extended query protocol. */
interface Wire {
  readonly stream: { cork(): void; uncork(): void }
  parse(statement: { name: string; text: string }): void
  bind(portal: { statement: string; values: readonly ParameterText[] }): void
  describe(portal: { type: 'P'; name: string }): void
  execute(portal: { portal: string; rows: number }): void
  close(statement: { type: 'S'; name: string }): void
  sync(): void
  sendCopyFail(message: string): void
}

/** What pg calls on an object that is given to `client.query`. */
interface Submittable {
  submit(wire: Wire): void
  handleRowDescription(message: { readonly fields: readonly FieldDescription[] }): void
  handleDataRow(message: { readonly fields: readonly (string | null)[] }): void
  handleCommandComplete(): void
  handleEmptyQuery(): void
  handlePortalSuspended(): void
  handleCopyInResponse(wire: Wire): void
  handleCopyData(): void
  handleReadyForQuery(): void
  handleError(error: unknown): void
}

/** A column as the server describes it. */
export interface FieldDescription {
  readonly name: string
  readonly dataTypeID: number
}

export interface WireStatement {
  /** Empty for a statement that is not kept. */
  readonly name: string
  readonly text: string
  readonly parameters: readonly ParameterText[]
  /** Whether it has to be parsed first. */
  readonly parse: boolean
  /** Whether the server is asked to describe its columns. */
  readonly describe: boolean
}

export interface WireResult {
  readonly rows: readonly (readonly (string | null)[])[]
  readonly fields?: readonly FieldDescription[]
}

/**
 * Sends statements in one write and reads their results. It leaves out what pg's queries do beside: events, describing columns that are
 * known, an object for each row.
 *
 * @param closed - names of statements that the server may drop first; unknown names do no harm
 * @throws the server's error of the first statement that fails; later ones did not run
 */
export function describeAndRun(
  connection: PgConnection,
  statements: readonly WireStatement[],
  closed: readonly string[],
): Promise<WireResult[]> {
  const { promise, resolve, reject } = Promise.withResolvers<WireResult[]>()
  const results: { rows: (readonly (string | null)[])[]; fields?: readonly FieldDescription[] }[] = statements.map(
    () => ({ rows: [] }),
  )
  let at = 0
  const current = () => results[at] ?? { rows: [] }
  const complete = () => {
    at++
  }
  connection.query({
    submit: (wire) => submit(wire, statements, closed),
    handleRowDescription: ({ fields }) => {
      current().fields = fields
    },
    handleDataRow: ({ fields }) => {
      current().rows.push(fields)
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
  for (const { name, text, parameters, parse, describe } of statements) {
    if (parse) wire.parse({ name, text })
    wire.bind({ statement: name, values: parameters })
    if (describe) wire.describe({ type: 'P', name: '' })
    wire.execute({ portal: '', rows: 0 })
  }
  wire.sync()
  wire.stream.uncork()
}
