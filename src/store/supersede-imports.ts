import { attachFacts } from './payment-facts.ts'
import { ownColumns, type PaymentFacts, type PaymentRow, paymentColumns } from './payment-row.ts'

/** The columns by which imported payments are compared with what detection has found. */
export type ComparedRow = Pick<
  PaymentRow,
  | 'id'
  | 'imported'
  | 'detected'
  | 'network'
  | 'tx_hash'
  | 'event_index'
  | 'source_tx_hash'
  | 'request_id'
  | 'payment_reference'
>

/**
 * Compares imported payments with the events that detection has counted in the same account. They meet by network, by transaction (that of the event,
 * or the one on the source chain), and by request or payment reference. Where they meet, events alone count: an imported payment that names no event
 * becomes the payment of the event if it meets no other event, and the event meets no other such payment. All others are superseded.
 *
 * @param rows - all payments of the account that may meet, in any order
 * @see CHAIN, "Imports beside detection"
 */
export function matchImports(rows: Iterable<ComparedRow>) {
  const all = [...rows]
  const events = all.filter(({ detected }) => detected)
  const met = meetEvents(all.filter(isOnlyImported), events)
  const claims = Map.groupBy(
    [...met].flatMap(([row, of]) => (isEventNamed(row) ? [] : of.map((event) => ({ row, event })))),
    ({ event }) => event,
  )
  /** By the id of the event's payment, the id of the imported payment that becomes it. */
  const adopted = new Map<string, string>()
  /** Ids of imported payments that count nowhere, because events count there. */
  const superseded = new Set<string>()
  for (const [row, of] of met) {
    const [event] = of
    if (event === undefined) continue
    const isOnlyOne = of.length === 1 && !event.imported && !isEventNamed(row) && claims.get(event)?.length === 1
    if (isOnlyOne) adopted.set(event.id, row.id)
    else superseded.add(row.id)
  }
  return { adopted, superseded }
}

function isOnlyImported({ imported, detected }: ComparedRow): boolean {
  return imported && !detected
}

function isEventNamed({ tx_hash, event_index }: ComparedRow): boolean {
  return tx_hash !== null && event_index !== null
}

/** The events that each imported payment meets. */
function meetEvents(
  imports: readonly ComparedRow[],
  events: readonly ComparedRow[],
): ReadonlyMap<ComparedRow, readonly ComparedRow[]> {
  if (imports.length === 0) return new Map()
  const byTransaction = Map.groupBy(events, ({ tx_hash }) => tx_hash?.toString('hex'))
  const bySource = Map.groupBy(events, ({ source_tx_hash }) => source_tx_hash?.toString('hex'))
  const found = (index: typeof bySource, hash: Buffer | null) =>
    hash === null ? [] : (index.get(hash.toString('hex')) ?? [])
  return new Map(
    imports.map((row) => {
      const near = new Set([...found(byTransaction, row.tx_hash), ...found(bySource, row.source_tx_hash)])
      return [row, [...near].filter((event) => row.network === event.network && isOfOneRequest(row, event))]
    }),
  )
}

function isOfOneRequest(row: ComparedRow, event: ComparedRow): boolean {
  return isSame(row.request_id, event.request_id) || isSame(row.payment_reference, event.payment_reference)
}

function isSame(a: Buffer | null, b: Buffer | null): boolean {
  return a !== null && b !== null && a.equals(b)
}

/** What is known beside the rows. */
export interface Superseding {
  /** Hexadecimal digits of the requests whose chain is followed. */
  readonly followed: ReadonlySet<string>
  /** By {@link removedKey}: transactions in which detection had counted an event of a request that a reorg removed. */
  readonly removed: ReadonlySet<string>
  /** Hexadecimal digits of transactions that were read again: imported payments count again where no event of theirs counts any more. */
  readonly reread?: ReadonlySet<string>
  /** Ids of rows that this transaction has written from a line. Their `updated_at` is that of the line. */
  readonly written?: ReadonlySet<string>
  readonly now: Date
}

/** Rows after {@link supersedeImports}. */
export interface Superseded {
  /** The given row itself where nothing changed. Without those of `absorbed`. */
  readonly rows: readonly PaymentRow[]
  /** Payments of events whose place an imported payment has taken, by the id of that payment. */
  readonly absorbed: ReadonlyMap<string, PaymentRow>
}

/**
 * Decides which imported payments count beside what detection has found, and merges those that are the payment of an event. An imported payment of a
 * request whose chain is followed never counts without a transaction. Nor does one of a
 * transaction whose event a reorg removed, until that transaction is read again.
 *
 * @param payments - all payments of the requests and of their transactions
 */
export function supersedeImports(payments: Iterable<PaymentRow>, known: Superseding): Superseded {
  const rows = [...payments]
  const { adopted, superseded } = matchImports(rows)
  const byId = new Map(rows.map((row) => [row.id, row]))
  const absorbed = new Map<string, PaymentRow>()
  for (const [eventId, importedId] of adopted) absorbed.set(importedId, byId.get(eventId) as PaymentRow)
  return {
    rows: rows.flatMap((row) => {
      if (adopted.has(row.id)) return []
      const event = absorbed.get(row.id)
      if (event !== undefined) return [becomeEvent(row, event)]
      const counts = !superseded.has(row.id) && (!isOnlyImported(row) || countsAlone(row, known))
      return [counts === !row.superseded ? row : mark(row, !counts, known)]
    }),
    absorbed,
  }
}

/** Whether an imported payment counts that meets no event. */
function countsAlone(row: PaymentRow, { followed, removed, reread }: Superseding): boolean {
  if (removed.has(removedKey(row))) return false
  if (row.tx_hash === null) return !row.superseded && !followed.has(row.request_id?.toString('hex') ?? '')
  return !row.superseded || reread?.has(row.tx_hash.toString('hex')) === true
}

/** Names a transaction and a request. */
export function removedKey({ network, tx_hash, request_id }: RemovedEvent): string {
  return `${network} ${tx_hash?.toString('hex')} ${request_id?.toString('hex')}`
}

/** What `removed_events` keeps of a payment. */
export type RemovedEvent = Pick<PaymentRow, 'network' | 'tx_hash' | 'request_id'>

function mark(row: PaymentRow, superseded: boolean, { written, now }: Superseding): PaymentRow {
  const isFresh = written?.has(row.id) === true
  return { ...row, superseded, updated_at: isFresh || row.updated_at > now ? row.updated_at : now }
}

/** The imported payment as the payment of an event, whose values it takes. */
function becomeEvent(row: PaymentRow, event: PaymentRow): PaymentRow {
  const { final, confirmations } = event
  return { ...attachFacts(row, factsOf(event)), final, confirmations }
}

const factColumns = paymentColumns.filter((column) => !(ownColumns as readonly string[]).includes(column))

function factsOf(row: PaymentRow): PaymentFacts {
  return Object.fromEntries(factColumns.map((column) => [column, row[column]])) as unknown as PaymentFacts
}
