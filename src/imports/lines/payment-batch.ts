import type { Payment } from '../../domain/payment.ts'
import { isFinalStatus } from '../../domain/payment-line.ts'
import type { WaybillError } from '../../errors/waybill-error.ts'
import { type Arrival, encodePaymentRow } from '../../store/payment-changes.ts'
import { rowOfPayment } from '../../store/payment-row.ts'
import { idOfLine, LINE_IS_KNOWN, LINE_IS_NEW, lineHashOf } from './line-keys.ts'
import { type DecimalsOf, parsePayment } from './parse-payment.ts'
import { forEachYielding, type ReadLine, readLine } from './parsed-lines.ts'
import type { Line } from './read-lines.ts'

/** What an import keeps of a payment. The rest stands in its row alone: to collect so many wide objects costs as much as to parse them. */
export interface LinePayment
  extends Pick<
    Payment,
    | 'id'
    | 'updatedAt'
    | 'network'
    | 'txHash'
    | 'eventIndex'
    | 'sourceTxHash'
    | 'requestId'
    | 'paymentReference'
    | 'payee'
  > {
  /** The row for COPY. */
  readonly row: Buffer
  readonly counted: Arrival
}

/** A batch in which only the lines that may change something were parsed. Places are indexes into the batch. */
export interface PaymentBatch {
  /** Lines known to change nothing; not parsed. */
  readonly known: readonly number[]
  readonly faults: ReadonlyMap<number, WaybillError>
  /** The parsed payments by place. */
  readonly payments: ReadonlyMap<number, LinePayment>
  /** Whether no stored row has the id of any of them, as far as is known. */
  readonly seemNew: boolean
}

/**
 * Parses the lines that may change something.
 *
 * @param letters - one letter a line, from `compareLines`
 * @param ids - receives each id as soon as it is parsed
 */
export async function readPaymentBatch(
  lines: readonly Line[],
  letters: string,
  ids: Set<string>,
  read: (line: Line) => ReadLine<LinePayment>,
): Promise<PaymentBatch> {
  const known = [...lines.keys()].filter((place) => letters[place] === LINE_IS_KNOWN)
  const others = [...lines.keys()].filter((place) => letters[place] !== LINE_IS_KNOWN)
  const faults = new Map<number, WaybillError>()
  const payments = new Map<number, LinePayment>()
  let seemNew = true

  await forEachYielding(others, (place) => {
    const line = lines[place] as Line
    const parsed = read(line)
    if (!parsed.ok) {
      faults.set(place, parsed.error)
      return
    }
    const { item } = parsed
    ids.add(item.id)
    payments.set(place, item)
    seemNew &&= letters[place] === LINE_IS_NEW && line.content !== undefined && idOfLine(line.content) === item.id
  })
  return { known, faults, payments, seemNew }
}

/** Parses a line. */
export function readPayment(line: Line, accountId: number, decimalsOf?: DecimalsOf): ReadLine<LinePayment> {
  return readLine(line, (json) =>
    linePaymentOf(parsePayment(json, decimalsOf), accountId, lineHashOf(line.content as Buffer)),
  )
}

/** @param lineHash - of the line that the payment was parsed from */
export function linePaymentOf(payment: Payment, accountId: number, lineHash: Buffer): LinePayment {
  const { id, updatedAt, network, txHash, eventIndex, sourceTxHash, requestId, paymentReference, payee } = payment
  const row = rowOfPayment(payment, {
    account_id: accountId,
    imported: true,
    detected: false,
    final: isFinalStatus(payment.status),
    line_hash: lineHash,
    line_updated_at: updatedAt,
  })
  const { source_network, currency, currency_symbol, invoice_currency, type, status, timestamp, metadata } = row
  const combination = { network, source_network, currency, currency_symbol, invoice_currency, type, status, timestamp }
  return {
    id,
    updatedAt,
    network,
    txHash,
    eventIndex,
    sourceTxHash,
    requestId,
    paymentReference,
    payee,
    row: encodePaymentRow(row),
    counted: { id, ...combination, metadata },
  }
}
