import type { ParameterText } from './parameters.ts'

/** What is used here of a client of pg. */
export interface PgConnection {
  query(query: Submittable): void
  getTransactionStatus(): 'I' | 'T' | 'E' | null
  getTypeParser(oid: number, format: 'text'): (text: string) => unknown
}

/** The messages of the extended query protocol, as pg writes them. */
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

/** What a client of pg calls on whatever is given to its `query`. */
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

/** A column, as the server describes it. */
export interface FieldDescription {
  readonly name: string
  readonly dataTypeID: number
}

export interface WireStatement {
  /** Empty for one that is not kept. */
  readonly name: string
  readonly text: string
  readonly parameters: readonly ParameterText[]
  /** Whether the server does not know it yet. */
  readonly parse: boolean
  /** Whether its columns are to be described. */
  readonly describe: boolean
}

export interface WireResult {
  readonly rows: readonly (readonly (string | null)[])[]
  readonly fields?: readonly FieldDescription[]
}

/**
 * Sends statements in one write and reads their results. What the driver's own queries do besides is left out: events, the
 * description of columns that are known, an object a row.
 *
 * @param closing - statements to be forgotten before; those that are not there do no harm
 * @throws what the server says of the first that fails; those after it did not run
 */
export function describeAndRun(
  connection: PgConnection,
  statements: readonly WireStatement[],
  closing: readonly string[],
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
    submit: (wire) => submit(wire, statements, closing),
    handleRowDescription: ({ fields }) => {
      current().fields = fields
    },
    handleDataRow: ({ fields }) => {
      current().rows.push(fields)
    },
    handleCommandComplete: complete,
    handleEmptyQuery: complete,
    handlePortalSuspended: complete,
    handleCopyInResponse: (wire) => wire.sendCopyFail('a prepared statement copies nothing'),
    handleCopyData() {},
    handleReadyForQuery: () => resolve(results),
    handleError: reject,
  })
  return promise
}

function submit(wire: Wire, statements: readonly WireStatement[], closing: readonly string[]): void {
  wire.stream.cork()
  for (const name of closing) wire.close({ type: 'S', name })
  for (const { name, text, parameters, parse, describe } of statements) {
    if (parse) wire.parse({ name, text })
    wire.bind({ statement: name, values: parameters })
    if (describe) wire.describe({ type: 'P', name: '' })
    wire.execute({ portal: '', rows: 0 })
  }
  wire.sync()
  wire.stream.uncork()
}
