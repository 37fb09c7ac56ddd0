import type { WaybillError } from '../errors/waybill-error.ts'
import { idOfLine, lineHashOf } from './line-keys.ts'
import { collectNewPayments, type LinePayment, type NewPayments } from './new-payments.ts'
import { parsePayment } from './parse-payment.ts'
import { forEachInTurns, readLine } from './parsed-lines.ts'
import type { Line } from './read-lines.ts'
import { LINE_IS_KNOWN, LINE_IS_NEW } from './sql/known-lines-repository.ts'

/** A batch of lines, of which those that seem to change something were read. Places are those in the batch. */
export interface PaymentBatch {
  /** Lines that were told to change nothing, and not read. */
  readonly known: readonly number[]
  /** All others, ascending; those at fault included. */
  readonly read: readonly number[]
  readonly faults: ReadonlyMap<number, WaybillError>
  /** What was read, where nothing of it seems to be stored. */
  readonly news: NewPayments | undefined
  /** Else this holds what was read; some may be missing, and are to be read once more. */
  readonly payments: ReadonlyMap<number, LinePayment>
}

/**
 * Reads the lines that are not known.
 *
 * @param told - a letter a line, as `compareLines` gives them
 * @param ids - receives the ids of what is read, as soon as they are
 */
export async function readPaymentBatch(
  lines: readonly Line[],
  { told, accountId, ids }: { readonly told: string; readonly accountId: number; readonly ids: Set<string> },
): Promise<PaymentBatch> {
  const placesOf = (isWanted: (letter: string | undefined) => boolean) =>
    [...lines.keys()].filter((place) => isWanted(told[place]))
  const faults = new Map<number, WaybillError>()
  const payments = new Map<number, LinePayment>()
  const collector = collectNewPayments(accountId)
  let areAllNew = true
  // those that may be stored come first, since they decide what is made of the others
  const odd = placesOf((letter) => letter !== LINE_IS_KNOWN && letter !== LINE_IS_NEW)
  const seemNew = placesOf((letter) => letter === LINE_IS_NEW)

  await forEachInTurns([...odd, ...seemNew], (place) => {
    const line = lines[place] as Line
    const read = readPayment(line)
    if (!read.ok) {
      faults.set(place, read.error)
      return
    }
    const { item } = read
    ids.add(item.id)
    const isNew = told[place] === LINE_IS_NEW && line.content !== undefined && idOfLine(line.content) === item.id
    areAllNew &&= isNew && collector.add(item)
    if (!areAllNew) payments.set(place, item)
  })
  return {
    known: placesOf((letter) => letter === LINE_IS_KNOWN),
    read: placesOf((letter) => letter !== LINE_IS_KNOWN),
    faults,
    payments,
    news: areAllNew ? collector.end() : undefined,
  }
}

/** Reads a line, and notes what it is known by. */
export function readPayment(line: Line) {
  return readLine(line, (json): LinePayment => {
    const payment = parsePayment(json)
    // in place, since copies of wide objects cost as much as reading them
    return Object.assign(payment, { lineHash: lineHashOf(line.content as Buffer) })
  })
}
