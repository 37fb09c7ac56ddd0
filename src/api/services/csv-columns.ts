import { ExportPaymentsRequestSchema } from '../../../gen/payments/v1/payment_export_pb.js'
import { addDecimals, type Decimal, formatDecimal, parseDecimal, sumDecimals, ZERO } from '../../domain/decimal.ts'
import { type FeeType, feeTypes } from '../../domain/payment.ts'
import type { FeeEntry, PaymentLine } from '../../domain/payment-line.ts'
import { allowedTexts } from '../messages/proto-options.ts'

/** A column of an export as CSV: what stands in its cell; undefined for an unknown value. */
type Column = (line: PaymentLine) => unknown

/** The columns that hold parts of a line's fields. */
const parts = new Map<string, Column>([
  ['gasAmount', ({ gas }) => gas?.amount],
  ['gasCurrency', ({ gas }) => gas?.currency],
  ['gasAmountInUSD', ({ gas }) => gas?.amountInUSD],
  ...feeTypes.flatMap(columnsOfFee),
])

/**
 * All columns by their names, in the order of a file for which none were chosen: those that the request allows. Each is a part of a line, or a field
 * of it, in which lists and objects are JSON.
 */
export const csvColumns: ReadonlyMap<string, Column> = new Map(
  allowedTexts(ExportPaymentsRequestSchema.field.columns).map((name) => [
    name,
    parts.get(name) ?? ((line) => line[name as keyof PaymentLine]),
  ]),
)

/** `platformFee`, `platformFeeCurrency` and `platformFeeInUSD`. */
function columnsOfFee(type: FeeType): [string, Column][] {
  const name = `${type.toLowerCase()}Fee`
  const linesOf = ({ fees = [] }: PaymentLine) => fees.filter((fee) => fee.type === type)
  return [
    [name, (line) => listOf([...sumByCurrency(linesOf(line)).values()].map(formatDecimal))],
    [`${name}Currency`, (line) => listOf([...sumByCurrency(linesOf(line)).keys()])],
    [`${name}InUSD`, (line) => sumInUsd(linesOf(line))],
  ]
}

function sumByCurrency(fees: readonly FeeEntry[]): ReadonlyMap<string, Decimal> {
  const sums = new Map<string, Decimal>()
  for (const { amount, currency } of fees) {
    sums.set(currency, addDecimals(sums.get(currency) ?? ZERO, parseDecimal(amount) ?? ZERO))
  }
  return sums
}

/** One value; those of several currencies are separated by spaces, in the same order in both columns. */
function listOf(values: readonly string[]): string | undefined {
  return values.length === 0 ? undefined : values.join(' ')
}

/** Unknown where the value of one line is. */
function sumInUsd(fees: readonly FeeEntry[]): string | undefined {
  const known = fees.flatMap(({ amountInUSD }) =>
    amountInUSD === undefined ? [] : [parseDecimal(amountInUSD) ?? ZERO],
  )
  return fees.length === 0 || known.length < fees.length ? undefined : formatDecimal(sumDecimals(known))
}
