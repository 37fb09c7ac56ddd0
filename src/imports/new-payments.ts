import { symbolOfCurrency } from '../domain/currency.ts'
import { codeOfType, type Payment, rankOfStatus } from '../domain/payment.ts'
import { isFinalStatus } from '../domain/payment-line.ts'
import { encodePaymentRow } from '../store/payment-copy.ts'
import type { RowOrigin } from '../store/payment-row.ts'
import type { Arrivals } from '../store/payment-statistics.ts'

/** A payment with the hash of the line that it was parsed from. */
export type LinePayment = Payment & { readonly lineHash: Buffer }

/** The columns of an imported row that are not part of its payment. */
export function originOf(accountId: number, { status, lineHash, updatedAt }: LinePayment): RowOrigin {
  const line = { line_hash: lineHash, line_updated_at: updatedAt }
  return { account_id: accountId, imported: true, detected: false, final: isFinalStatus(status), ...line }
}

/** A payment without a request id but with a payment reference, by which its request may be found. */
export interface Unnamed {
  readonly payment: LinePayment
  /** Its row when no request is found. */
  readonly row: string
}

/** Payments that seem to be new, as rows for COPY; to save memory the payments themselves are not kept. */
export interface NewPayments {
  readonly accountId: number
  /** Without repetition; nor does any event repeat. */
  readonly ids: readonly string[]
  /** Rows of payments that name a request or have no reference. */
  readonly chunks: readonly Buffer[]
  readonly unnamed: readonly Unnamed[]
  /** The requests that the payments name. */
  readonly requestIds: ReadonlySet<string>
  /** Of payments that name a reference, the digits of their transactions, on either chain: detection may have found them. */
  readonly hashes: ReadonlySet<string>
  readonly arrivals: readonly Arrivals[]
}

/** Collects new payments. */
export interface NewPaymentsCollector {
  /** @returns false when the id or event was added before: then the order of the two matters, and they must be compared */
  add(payment: LinePayment): boolean
  end(): NewPayments
}

const CHUNK_LENGTH = 64 * 1024

export function collectNewPayments(accountId: number): NewPaymentsCollector {
  const ids: string[] = []
  const keys = new Set<string>()
  const chunks: Buffer[] = []
  const unnamed: Unnamed[] = []
  const requestIds = new Set<string>()
  const hashes = new Set<string>()
  const arrivals = new Map<string, Mutable<Arrivals>>()
  let text = ''
  const flush = () => {
    if (text !== '') chunks.push(Buffer.from(text))
    text = ''
  }
  return {
    add(payment) {
      const event = eventOf(payment)
      if (keys.has(payment.id) || (event !== undefined && keys.has(event))) return false
      keys.add(payment.id)
      if (event !== undefined) keys.add(event)
      ids.push(payment.id)
      addArrival(arrivals, payment)
      for (const hash of hashesOf(payment)) hashes.add(hash)
      const row = encodePaymentRow(payment, originOf(accountId, payment))
      if (payment.requestId !== undefined) requestIds.add(payment.requestId)
      else if (payment.paymentReference !== undefined) {
        unnamed.push({ payment, row })
        return true
      }
      text += row
      if (text.length >= CHUNK_LENGTH) flush()
      return true
    },
    end() {
      flush()
      return { accountId, ids, chunks, unnamed, requestIds, hashes, arrivals: [...arrivals.values()] }
    },
  }
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] }

/** Identifies the payment's event; undefined without transaction hash or event index. */
export function eventOf({ txHash, eventIndex, network }: Payment): string | undefined {
  return txHash === undefined || eventIndex === undefined ? undefined : `${txHash} ${eventIndex} ${network}`
}

/** The digits of the transactions of a payment that names a reference. */
export function hashesOf({ paymentReference, txHash, sourceTxHash }: Payment): string[] {
  if (paymentReference === undefined) return []
  return [txHash, sourceTxHash].flatMap((hash) => hash?.slice(2) ?? [])
}

/** Counts payments by the combinations of the statistics. */
export function arrivalsOf(payments: readonly Payment[]): Arrivals[] {
  const arrivals = new Map<string, Mutable<Arrivals>>()
  for (const payment of payments) addArrival(arrivals, payment)
  return [...arrivals.values()]
}

function addArrival(arrivals: Map<string, Mutable<Arrivals>>, payment: Payment): void {
  const { network, sourceNetwork = '', currency, invoiceCurrency = '', timestamp } = payment
  const type = payment.type === undefined ? -1 : codeOfType(payment.type)
  const status = rankOfStatus(payment.status)
  const key = `${network}\n${sourceNetwork}\n${currency}\n${invoiceCurrency}\n${type}\n${status}`
  const known = arrivals.get(key)
  if (known === undefined) {
    const currencySymbol = symbolOfCurrency(currency)
    const bounds = { firstAt: timestamp, lastAt: timestamp }
    arrivals.set(key, {
      network,
      sourceNetwork,
      currency,
      currencySymbol,
      invoiceCurrency,
      type,
      status,
      n: 1,
      ...bounds,
    })
    return
  }
  known.n++
  if (timestamp < known.firstAt) known.firstAt = timestamp
  if (timestamp > known.lastAt) known.lastAt = timestamp
}
