import { formatDecimal, parseDecimal } from '../domain/decimal.ts'
import { bitsOfMarks, rankOfStatus } from '../domain/payment.ts'
import type { PaymentFacts, PaymentRow } from './payment-row.ts'

/** Columns that no import decides: what a bridge delivered is asked about, and money that goes to somebody who never paid is no refund. */
const PROVEN_COLUMNS: ReadonlySet<string> = new Set(['payer', 'source_network', 'source_tx_hash'])

/**
 * Merges what was read from the chain into a stored row. A row that was detected in the same block stays as it is, even if a price has become
 * unknown since. In an imported row, what was read from the chain replaces what was imported; who paid and from where is unknown where the chain does
 * not tell, whatever the import says.
 *
 * @returns the given row when nothing changes
 */
export function attachFacts(row: PaymentRow, read: PaymentFacts): PaymentRow {
  const seen = markDetected(row)
  const facts = { ...read, marks: mergeMarks(row, read) }
  if (!seen.imported && seen.block_number === facts.block_number) return seen
  const isFirst = !row.detected
  const known = Object.entries(facts).filter(
    ([name, value]) =>
      (isFirst && PROVEN_COLUMNS.has(name)) || (value !== null && !(Array.isArray(value) && value.length === 0)),
  )
  const merged = { ...seen, ...(Object.fromEntries(known) as Partial<PaymentFacts>) }
  const changed = known.some(([name, value]) => !isSameValue(seen[name as keyof PaymentRow], value))
  return changed ? merged : seen
}

/** The mark that settling decides, by the list of the request. */
export const NOT_ALLOWED = bitsOfMarks(['PAYER_NOT_ALLOWED'])

/** The mark of a payment whose payer could not be screened. */
export const UNSCREENED = bitsOfMarks(['SCREENING_UNKNOWN'])

/** The marks of a row whose event was read again. What the oracle said of the same payer before is not lost because it cannot be asked now. */
export function mergeMarks(row: PaymentRow, { payer, marks }: Pick<PaymentFacts, 'payer' | 'marks'>): number {
  const isKept = marks === UNSCREENED && isSameValue(row.payer, payer)
  return isKept ? row.marks : (row.marks & NOT_ALLOWED) | marks
}

/**
 * Once an imported payment is detected, its block decides whether it is final, and a FAILED one was made after all. The imported line may no
 * longer agree with the row, so its hash is dropped: the line is read again when it is imported again.
 */
function markDetected(row: PaymentRow): PaymentRow {
  const revived = row.status === rankOfStatus('FAILED') ? { ...row, status: rankOfStatus('PENDING') } : row
  if (row.detected) return revived
  return { ...revived, detected: true, superseded: false, final: false, confirmations: null, line_hash: null }
}

/** Whether two values of a column are the same to the database. */
export function isSameValue(a: unknown, b: unknown): boolean {
  return canonicalValue(a) === canonicalValue(b)
}

/** A text that equal values of a column have alike. */
export function canonicalValue(value: unknown): string {
  if (Buffer.isBuffer(value)) return value.toString('hex')
  if (value instanceof Date) return String(value.getTime())
  if (typeof value === 'object' && value !== null) return JSON.stringify(sortKeys(value))
  const decimal = typeof value === 'string' ? parseDecimal(value) : undefined
  return decimal === undefined ? String(value) : formatDecimal(decimal)
}

/** PostgreSQL returns the keys of a JSON column in another order. */
function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return Object.fromEntries(entries.map(([name, inner]) => [name, sortKeys(inner)]))
}
