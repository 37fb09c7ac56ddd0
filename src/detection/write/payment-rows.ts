import { codeOfType, type ExchangeRate, rankOfStatus } from '../../domain/payment.ts'
import { canonicalValue, isSameValue, mergeMarks } from '../../store/payment-facts.ts'
import { factsOfPayment, type PaymentFacts, type PaymentRow } from '../../store/payment-row.ts'
import type { DetectedPayment, EventPlace } from '../match/detected.ts'

/** The chain whose rows are written. */
export interface WrittenChain {
  /** CAIP-2. */
  readonly chainId: string
  /** Canonical name. */
  readonly network: string
}

/**
 * Merges detected payments into an account's stored rows. The event decides which row a payment belongs to, so that an imported payment keeps
 * its own id.
 *
 * @param stored - by id
 * @param merge - what becomes of a row that is stored already; {@link attachFacts} or {@link correctFacts}
 * @returns all rows, the stored ones included
 */
export function addPayments(
  stored: ReadonlyMap<string, PaymentRow>,
  { accountId, payments, now }: { accountId: number; payments: readonly DetectedPayment[]; now: Date },
  chain: WrittenChain,
  merge: (row: PaymentRow, facts: PaymentFacts) => PaymentRow,
): PaymentRow[] {
  const rows = new Map(stored)
  const idOfEvent = new Map([...stored.values()].map((row) => [rowKeyOf(row), row.id]))
  for (const payment of payments) {
    const facts = factsOf(payment, chain)
    const id = idOfEvent.get(rowKeyOf(facts)) ?? payment.id
    const known = rows.get(id)
    rows.set(id, known === undefined ? newRow(accountId, id, facts, now) : merge(known, facts))
    idOfEvent.set(rowKeyOf(facts), id)
  }
  return [...rows.values()]
}

/** The columns of a detected payment. Where a payment that a bridge delivered came from is unknown at first. */
function factsOf(payment: DetectedPayment, chain: WrittenChain): PaymentFacts {
  return factsOfPayment({
    ...payment,
    blockNumber: BigInt(payment.blockNumber),
    network: chain.network,
    chainId: chain.chainId,
    ...(payment.type === 'CROSSCHAIN' ? {} : { sourceNetwork: chain.network, sourceTxHash: payment.txHash }),
  })
}

function newRow(accountId: number, id: string, facts: PaymentFacts, now: Date): PaymentRow {
  return {
    account_id: accountId,
    id,
    ...facts,
    status: rankOfStatus('PENDING'),
    final: false,
    imported: false,
    detected: true,
    superseded: false,
    confirmations: null,
    updated_at: now,
    refunded_amount: '0',
    refunds: [],
    status_history: [],
    line_hash: null,
    line_updated_at: null,
    metadata: null,
  }
}

/** Identifies the event of a row of payments or refunds; undefined while an imported payment names no event. */
export function rowKeyOf(row: Pick<PaymentRow, 'tx_hash' | 'event_index' | 'network'>): string | undefined {
  if (row.tx_hash === null || row.event_index === null) return undefined
  return `${row.tx_hash.toString('hex')} ${row.event_index} ${row.network}`
}

/** The key that a row of this event has. */
export function rowKeyAt({ txHash, eventIndex }: EventPlace, { network }: WrittenChain): string {
  return `${txHash.slice(2)} ${eventIndex} ${network}`
}

/**
 * What happens to a column when its event is read again: by a `MATCHED` one the payment is another, and what was computed from the old one, prices of
 * the time included, is replaced; a `SEEN` one is decided by blocks and requests alone; a `FILLED` one is filled in; a `FIXED` one is part of the
 * event's place.
 */
const columnRules = {
  block_number: 'MATCHED',
  log_index: 'MATCHED',
  request_id: 'MATCHED',
  type: 'MATCHED',
  amount: 'MATCHED',
  invoice_amount: 'MATCHED',
  currency: 'MATCHED',
  event_index: 'SEEN',
  timestamp: 'SEEN',
  payee: 'SEEN',
  initiator: 'SEEN',
  token_address: 'SEEN',
  payment_reference: 'SEEN',
  reference: 'SEEN',
  currency_symbol: 'SEEN',
  invoice_currency: 'SEEN',
  source_network: 'SEEN',
  source_tx_hash: 'SEEN',
  payer: 'FILLED',
  marks: 'FILLED',
  amount_in_usd: 'FILLED',
  fees: 'FILLED',
  exchange_rates: 'FILLED',
  gas: 'FILLED',
  network: 'FIXED',
  chain_id: 'FIXED',
  tx_hash: 'FIXED',
} as const satisfies Readonly<Record<keyof PaymentFacts, 'MATCHED' | 'SEEN' | 'FILLED' | 'FIXED'>>

const factNames = Object.keys(columnRules) as (keyof PaymentFacts)[]
const matchedColumns = factNames.filter((name) => columnRules[name] === 'MATCHED')
const seenColumns = factNames.filter((name) => columnRules[name] === 'SEEN')

/**
 * Corrects a stored row by what reading its event again found. The payer is replaced, even by an unknown one; figures that were unknown are
 * filled in; prices of the time, which may no longer be readable, change only where the rules now come to another payment. Of an imported row only the
 * payer is replaced, and what is unknown filled in. The payer that a bridge named stays.
 *
 * @returns the given row when nothing changes
 */
export function correctFacts(row: PaymentRow, facts: PaymentFacts): PaymentRow {
  if (row.imported) return row.detected ? fillIn(row, facts) : row
  const isOther = matchedColumns.some((name) => !isSameValue(row[name], facts[name])) || !areSame(row.fees, facts.fees)
  const isCarried = facts.type === codeOfType('CROSSCHAIN') && row.type === facts.type
  const { payer, source_network, source_tx_hash } = isCarried ? row : facts
  const marks = mergeMarks(row, isSameValue(payer, facts.payer) ? facts : row)
  const corrected = { ...facts, payer, source_network, source_tx_hash, marks }
  if (isOther) return { ...row, ...corrected }
  const seen = seenColumns.filter((name) => !isSameValue(row[name], corrected[name]))
  const filled = fillIn(row, corrected)
  return seen.length === 0 ? filled : { ...filled, ...Object.fromEntries(seen.map((name) => [name, corrected[name]])) }
}

/** Sets the payer, and each figure that the row lacks. @returns the given row when nothing changes */
function fillIn(row: PaymentRow, facts: PaymentFacts): PaymentRow {
  const { payer, amount_in_usd, gas, fees, exchange_rates } = facts
  const isGasOpen = row.gas?.amountInUsd === undefined || !areSame(row.gas, gas ?? row.gas)
  const filled = {
    payer,
    marks: mergeMarks(row, facts),
    amount_in_usd: row.amount_in_usd ?? amount_in_usd,
    gas: isGasOpen ? (gas ?? row.gas) : row.gas,
    fees: row.fees.every(({ amountInUsd }) => amountInUsd === undefined) && fees.length > 0 ? fees : row.fees,
    exchange_rates: [...row.exchange_rates, ...exchange_rates.filter((rate) => !hasRate(row.exchange_rates, rate))],
  }
  const columns = Object.keys(filled) as (keyof typeof filled)[]
  return columns.every((name) => isSameValue(row[name], filled[name])) ? row : { ...row, ...filled }
}

function hasRate(rates: PaymentRow['exchange_rates'], { from, to }: ExchangeRate): boolean {
  return rates.some((rate) => rate.from === from && rate.to === to)
}

/** Whether fees or gas are the same but for their values in US dollars. */
function areSame(a: PaymentRow['fees'] | PaymentRow['gas'], b: PaymentRow['fees'] | PaymentRow['gas']): boolean {
  const textOf = (value: typeof a) =>
    canonicalValue([value ?? []].flat().map((each) => ({ ...each, amountInUsd: undefined })))
  return textOf(a) === textOf(b)
}

/**
 * Makes the chain's payments up to a block final and freezes their confirmations. Payments without a request never become final.
 *
 * @returns the given row where nothing changes
 */
export function finalisePayments(
  rows: readonly PaymentRow[],
  { chainId }: WrittenChain,
  { finalBlock, headBlock }: { readonly finalBlock: number; readonly headBlock: number },
): PaymentRow[] {
  return rows.map((row) => {
    if (row.final || row.superseded || row.request_id === null || row.chain_id !== chainId) return row
    if (row.block_number === null || row.block_number > finalBlock) return row
    return { ...row, final: true, confirmations: Math.max(1, headBlock - Number(row.block_number) + 1) }
  })
}
