import type { WaybillError } from '../errors/waybill-error.ts'
import { idOfLine, lineHashOf } from './line-keys.ts'
import { collectNewPayments, type LinePayment, type NewPayments } from './new-payments.ts'
import { type DecimalsOf, parsePayment } from './parse-payment.ts'
import { forEachInTurns, readLine } from './parsed-lines.ts'
import type { Line } from './read-lines.ts'
import { LINE_IS_KNOWN, LINE_IS_NEW } from './sql/known-lines-repository.ts'

/** A batch in which only the lines that may change something were parsed. Places are indexes into the batch. */
export interface PaymentBatch {
  /** Lines known to change nothing; not parsed. */
  readonly known: readonly number[]
  /** All other lines, ascending, bad ones included. */
  readonly read: readonly number[]
  readonly faults: ReadonlyMap<number, WaybillError>
  /** The parsed payments when all of them seem to be new. */
  readonly newPayments: NewPayments | undefined
  /** Otherwise the parsed payments by place. Some may be missing and must be parsed again. */
  readonly payments: ReadonlyMap<number, LinePayment>
}

/**
 * Parses the lines that may change something.
 *
 * @param letters - one letter a line, from `compareLines`
 * @param ids - receives each id as soon as it is parsed
 */
export async function readPaymentBatch(
  lines: readonly Line[],
  {
    letters,
    accountId,
    ids,
    decimalsOf,
  }: {
    readonly letters: string
    readonly accountId: number
    readonly ids: Set<string>
    readonly decimalsOf?: DecimalsOf | undefined
  },
): Promise<PaymentBatch> {
  const placesOf = (isWanted: (letter: string | undefined) => boolean) =>
    [...lines.keys()].filter((place) => isWanted(letters[place]))
  const faults = new Map<number, WaybillError>()
  const payments = new Map<number, LinePayment>()
  const collector = collectNewPayments(accountId)
  let areAllNew = true
  // Lines whose payment may be stored come first: if there are any, the others are not collected as new.
  const odd = placesOf((letter) => letter !== LINE_IS_KNOWN && letter !== LINE_IS_NEW)
  const seemNew = placesOf((letter) => letter === LINE_IS_NEW)

  await forEachInTurns([...odd, ...seemNew], (place) => {
    const line = lines[place] as Line
    const read = readPayment(line, decimalsOf)
    if (!read.ok) {
      faults.set(place, read.error)
      return
    }
    const { item } = read
    ids.add(item.id)
    const isNew = letters[place] === LINE_IS_NEW && line.content !== undefined && idOfLine(line.content) === item.id
    areAllNew &&= isNew && collector.add(item)
    if (!areAllNew) payments.set(place, item)
  })
  return {
    known: placesOf((letter) => letter === LINE_IS_KNOWN),
    read: placesOf((letter) => letter !== LINE_IS_KNOWN),
    faults,
    payments,
    newPayments: areAllNew ? collector.end() : undefined,
  }
}

/** Parses a line and adds its hash. */
export function readPayment(line: Line, decimalsOf?: DecimalsOf) {
  return readLine(line, (json): LinePayment => {
    const payment = parsePayment(json, decimalsOf)
    // In place, because copying such wide objects costs as much as parsing them.
    return Object.assign(payment, { lineHash: lineHashOf(line.content as Buffer) })
  })
}
