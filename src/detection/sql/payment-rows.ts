import { formatDecimal, parseDecimal } from '../../domain/decimal.ts'
import type { Hex } from '../../domain/hex.ts'
import { codeOfType } from '../../domain/payment.ts'
import { factsOfPayment, type PaymentFacts, type PaymentRow } from '../../store/payment-row.ts'
import type { DetectedPayment } from '../match/detected.ts'

/** The chain that is written for. */
export interface WrittenChain {
  /** CAIP-2. */
  readonly chainId: string
  /** Canonical name. */
  readonly network: string
}

/** Turns a detected payment into its columns. Where one that a bridge delivered came from, the chain does not tell. */
export function factsOf(payment: DetectedPayment, chain: WrittenChain): PaymentFacts {
  return factsOfPayment({
    ...payment,
    blockNumber: BigInt(payment.blockNumber),
    network: chain.network,
    chainId: chain.chainId,
    ...(payment.type === 'CROSSCHAIN' ? {} : { sourceNetwork: chain.network, sourceTxHash: payment.txHash }),
  })
}

/** Where a payment's event is, as one text; undefined while a row does not say. */
export function eventKeyOf(row: Pick<PaymentRow, 'tx_hash' | 'event_index' | 'network'>): string | undefined {
  if (row.tx_hash === null || row.event_index === null) return undefined
  return `${row.tx_hash.toString('hex')} ${row.event_index} ${row.network}`
}

/** The same of an event as the chain tells it. */
export function placeKeyOf(
  { txHash, eventIndex }: { readonly txHash: Hex; readonly eventIndex: number },
  { network }: WrittenChain,
): string {
  return `${txHash.slice(2)} ${eventIndex} ${network}`
}

/**
 * Brings what the chain tells into a stored row. A detected row of that block says it already, and stays as it is even if a
 * price has become unknown since; of an imported one the chain's facts win where there are any.
 *
 * @returns the given row when nothing changes
 */
export function mergeFacts(row: PaymentRow, facts: PaymentFacts): PaymentRow {
  if (!row.imported && row.block_number === facts.block_number) return row
  const known = Object.entries(facts).filter(
    ([, value]) => value !== null && !(Array.isArray(value) && value.length === 0),
  )
  const merged = { ...row, ...(Object.fromEntries(known) as Partial<PaymentFacts>) }
  const changed = known.some(([name, value]) => !isSameValue(row[name as keyof PaymentRow], value))
  return changed ? merged : row
}

/** What the rules decide of a payment, beside who paid it. Prices of the time may not be had any more, so the rest stays. */
const ruledColumns = ['block_number', 'request_id', 'type', 'amount', 'invoice_amount', 'currency'] as const

/**
 * Makes a stored row what looking at its event again has found. Who paid is taken even where that is unknown now; the rest only where
 * the payment itself is another. Of one that a bridge delivered, what the bridge has told of its payer stays, and so does an import.
 *
 * @returns the given row when nothing changes
 */
export function correctFacts(row: PaymentRow, facts: PaymentFacts): PaymentRow {
  if (row.imported) return row
  const isOther =
    ruledColumns.some((name) => !isSameValue(row[name], facts[name])) ||
    canonicalValue(withoutWorth(row.fees)) !== canonicalValue(withoutWorth(facts.fees))
  const isCarried = facts.type === codeOfType('CROSSCHAIN') && row.type === facts.type
  const { payer, source_network, source_tx_hash } = isCarried ? row : facts
  if (isOther) return { ...row, ...facts, payer, source_network, source_tx_hash }
  return isSameValue(row.payer, payer) ? row : { ...row, payer }
}

function withoutWorth(fees: PaymentRow['fees']): unknown {
  return fees.map((fee) => ({ ...fee, amountInUsd: undefined }))
}

/** Whether two values of a column are the same to the database. */
function isSameValue(a: unknown, b: unknown): boolean {
  return canonicalValue(a) === canonicalValue(b)
}

function canonicalValue(value: unknown): string {
  if (Buffer.isBuffer(value)) return value.toString('hex')
  if (value instanceof Date) return String(value.getTime())
  if (typeof value === 'object' && value !== null) return JSON.stringify(sortKeys(value))
  const decimal = typeof value === 'string' ? parseDecimal(value) : undefined
  return decimal === undefined ? String(value) : formatDecimal(decimal)
}

/** JSON columns come back with their keys in another order. */
function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return Object.fromEntries(entries.map(([name, inner]) => [name, sortKeys(inner)]))
}
