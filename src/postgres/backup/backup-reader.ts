import { createHash } from 'node:crypto'
import { damaged, ROWS_END } from './backup-format.ts'

/** Reads the text of a backup from its beginning to its end. */
export interface BackupReader {
  /** The next line; undefined at the end. */
  line(): Promise<string | undefined>
  /** The rows up to the line that ends them. */
  rows(): AsyncGenerator<Buffer, void>
  /** SHA-256 of what has been read, in hex. */
  digest(): string
}

const NEWLINE = 0x0a
/** A header has some kilobytes. What has no line after this is no backup. */
const MAX_LINE_BYTES = 16 * 1024 ** 2
const ROWS_END_LATER = Buffer.from(`\n${ROWS_END}`)

export function createBackupReader(source: AsyncIterable<Buffer>): BackupReader {
  const chunks = source[Symbol.asyncIterator]()
  const hash = createHash('sha256')
  /** Begins at the start of a line. */
  let rest: Buffer = Buffer.alloc(0)

  async function more(): Promise<boolean> {
    const next = await chunks.next()
    if (next.done === true) return false
    rest = rest.length === 0 ? next.value : Buffer.concat([rest, next.value])
    return true
  }

  function take(bytes: number): Buffer {
    const taken = rest.subarray(0, bytes)
    rest = rest.subarray(bytes)
    hash.update(taken)
    return taken
  }

  return {
    async line() {
      for (;;) {
        const end = rest.indexOf(NEWLINE)
        if (end !== -1)
          return take(end + 1)
            .toString()
            .slice(0, -1)
        if (rest.length > MAX_LINE_BYTES || !(await more()))
          return rest.length === 0 ? undefined : take(rest.length).toString()
      }
    },
    async *rows() {
      for (;;) {
        const isAtEnd = rest.subarray(0, ROWS_END.length).toString() === ROWS_END
        const end = isAtEnd ? 0 : rest.indexOf(ROWS_END_LATER) + 1
        if (end > 0) yield take(end)
        if (isAtEnd || end > 0) {
          take(ROWS_END.length)
          return
        }
        const whole = rest.lastIndexOf(NEWLINE) + 1
        if (whole > 0) yield take(whole)
        if (!(await more())) throw damaged('it ends among the rows of a table')
      }
    },
    digest: () => hash.copy().digest('hex'),
  }
}
