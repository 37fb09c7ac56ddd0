import { hash } from 'node:crypto'

/** How many rows a table has, and a number of their contents. */
export interface TableSum {
  readonly rows: number
  /** 36 hex digits: the sums of three parts of each row's SHA-256. The order of the rows does not matter. */
  readonly checksum: string
}

export interface RowSummer {
  /** Adds rows in the text format of COPY. A chunk may end within a row. */
  add(chunk: Buffer): void
  sum(): TableSum
}

const NEWLINE = 0x0a
const PART_BYTES = 6
/** Sums stay below 2^49, which a number holds exactly. */
const MODULUS = 2 ** 48

/** Sums rows as they pass. Servers return the rows of a table in any order, so the sum has none. */
export function createRowSummer(): RowSummer {
  const parts = [0, 0, 0]
  let rows = 0
  let begun: Buffer = Buffer.alloc(0)

  function addRow(row: Uint8Array): void {
    const digest = hash('sha256', row, 'buffer')
    for (const [at, part] of parts.entries()) {
      parts[at] = (part + digest.readUIntBE(at * PART_BYTES, PART_BYTES)) % MODULUS
    }
    rows += 1
  }

  return {
    add(chunk) {
      let from = 0
      for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, from)) {
        const row = chunk.subarray(from, end)
        addRow(begun.length === 0 ? row : Buffer.concat([begun, row]))
        begun = Buffer.alloc(0)
        from = end + 1
      }
      if (from < chunk.length) begun = Buffer.concat([begun, chunk.subarray(from)])
    },
    sum: () => ({ rows, checksum: parts.map((part) => part.toString(16).padStart(PART_BYTES * 2, '0')).join('') }),
  }
}
