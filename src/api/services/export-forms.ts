import type { Message } from '@bufbuild/protobuf'
import {
  type ExportPaymentsRequest,
  ExportPaymentsRequest_Format,
  ExportPaymentsRequestSchema,
} from '../../../gen/payments/v1/payment_search_service_pb.js'
import { addDecimals, type Decimal, formatDecimal, parseDecimal, sumDecimals, ZERO } from '../../domain/decimal.ts'
import { type FeeType, feeTypes, type Payment } from '../../domain/payment.ts'
import { type FeeEntry, formatPaymentLine, type PaymentLine, toPaymentLine } from '../../domain/payment-line.ts'
import { requireMetadataKey } from '../../domain/require-input.ts'
import { waybillError } from '../../errors/waybill-error.ts'
import type { ExportedPayment } from '../../search/export/export-payments.ts'
import { httpErrorBody } from '../calls/error-mapping.ts'
import type { StreamFormat } from '../calls/served-method.ts'
import { allowedTexts } from '../messages/proto-options.ts'
import { chooseStreamFormat } from '../rest/stream-format.ts'
import type { PaymentToProto } from './payment-to-proto.ts'

/**
 * An answer of an export. It holds the payments as they are, for the files of plain HTTP, and makes the fields of the message only when
 * a message is sent. A class because of its getter, for the same reason as Call in calls/call.ts.
 */
class ExportAnswer {
  readonly batch: readonly ExportedPayment[]
  readonly toProto: PaymentToProto

  constructor(batch: readonly ExportedPayment[], toProto: PaymentToProto) {
    this.batch = batch
    this.toProto = toProto
  }

  get payments() {
    return this.batch.map(this.toProto)
  }
}

/** The payments of an answer of ExportPayments, as the handler gave it. */
function paymentsOf(answer: object): readonly ExportedPayment[] {
  return (answer as ExportAnswer).batch
}

/** The number of payments in such an answer. */
export function countExported(answer: object): number {
  return paymentsOf(answer).length
}

/**
 * The most payments of a message, about 30 KB: larger texts are garbage-collected late. Clients of gRPC accept messages of 4 MB by default.
 */
const MAX_PAYMENTS = 20
const MAX_ENTRIES = 200

/** Splits a page into answers, by the number of payments and of the entries in their lists, which may be many. */
export function* exportAnswers(page: readonly ExportedPayment[], toProto: PaymentToProto): Generator<ExportAnswer> {
  let batch: ExportedPayment[] = []
  let entries = 0
  for (const payment of page) {
    const added = entriesOf(payment)
    if (batch.length === MAX_PAYMENTS || (batch.length > 0 && entries + added > MAX_ENTRIES)) {
      yield new ExportAnswer(batch, toProto)
      batch = []
      entries = 0
    }
    batch.push(payment)
    entries += added
  }
  if (batch.length > 0) yield new ExportAnswer(batch, toProto)
}

function entriesOf({ fees, exchangeRates, refunds, statusHistory }: Payment): number {
  return fees.length + exchangeRates.length + refunds.length + statusHistory.length
}

/*
 * Every form ends with an empty line: behind a proxy that speaks HTTP/1.0 a body ends when the connection does, so nothing else tells a cut
 * export from a whole one. Readers of JSON lines and of CSV skip empty lines, and no record is one.
 */

/** The lines that `waybill export payments` writes. An export that fails ends with `{"error":{…}}`. */
function jsonLines(contentType: string): StreamFormat {
  return {
    contentType,
    headers: { 'content-disposition': 'attachment; filename="payments.ndjson"' },
    message: (answer) =>
      paymentsOf(answer)
        .map((payment) => `${formatPaymentLine(payment)}\n`)
        .join(''),
    error: (error) => `{"error":${httpErrorBody(error)}}\n`,
    end: '\n',
    heartbeat: '',
  }
}

/**
 * Where a spreadsheet may begin a formula: at the beginning of a text, and after a character at which some spreadsheets split a file of commas
 * (a semicolon in half of Europe). The characters are those of OWASP's page on CSV injection and the apostrophe that guards against them.
 */
const FORMULA = /(^|[;\t\r\n])(?=["\s]*[=+\-@\uff1d\uff0b\uff0d\uff20'\t\r\n])/g

/**
 * RFC 4180. An export that fails ends with a line whose first cell is `error`, which is no payment's id.
 *
 * @param chosen - names of columns, already checked; empty for all
 */
function csvOf(chosen: readonly string[]): StreamFormat {
  const names = chosen.length === 0 ? [...csvColumns.keys()] : chosen
  const columns = names.flatMap((name) => csvColumns.get(name) ?? columnOfKey(name) ?? [])
  return {
    contentType: 'text/csv; charset=utf-8; header=present',
    headers: { 'content-disposition': 'attachment; filename="payments.csv"' },
    begin: lineOf(names),
    message: (answer) =>
      paymentsOf(answer)
        .map((payment) => withGasOnce(payment, toPaymentLine(payment)))
        .map((line) => lineOf(columns.map((cell) => cell(line))))
        .join(''),
    error: ({ reason, message }) => lineOf(padded(['error', reason, message], columns.length)),
    end: '\r\n',
    heartbeat: '',
  }
}

/** Gas of 0 where the gas of the transaction stands in another line, so that its column adds up. */
function withGasOnce({ gasStandsElsewhere }: ExportedPayment, line: PaymentLine): PaymentLine {
  const { gas } = line
  if (gasStandsElsewhere !== true || gas === undefined) return line
  return { ...line, gas: { ...gas, ...(gas.used === undefined ? {} : { used: '0' }), amount: '0', amountInUSD: '0' } }
}

/** As many cells as a line has; a file of fewer columns gets more of them in its last line. */
function padded(cells: readonly string[], columns: number): readonly (string | undefined)[] {
  return Array.from({ length: Math.max(cells.length, columns) }, (_, at) => cells[at])
}

function lineOf(values: readonly unknown[]): string {
  // Without quotes a record of one empty cell would be an empty line.
  return `${values.map(cellOf).join(',') || '""'}\r\n`
}

/**
 * Writes a cell, which is empty for an unknown value. What a spreadsheet would run gets an apostrophe in front, and so does an apostrophe in
 * that place: a reader gets the stored value back by removing one apostrophe at the beginning and after each separator.
 */
function cellOf(value: unknown): string {
  if (value === undefined) return ''
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  const guarded = text.replace(FORMULA, "$1'")
  return /[",\r\n]/.test(guarded) ? `"${guarded.replaceAll('"', '""')}"` : guarded
}

const ndjson = jsonLines('application/x-ndjson')

/**
 * Chooses the form of an export over plain HTTP: by `format`, else by `Accept`.
 *
 * @throws WaybillError NOT_ACCEPTABLE; INVALID_FIELD for columns of a form that has none
 */
export function chooseExportForm(accept: string | undefined, request: Message): StreamFormat {
  const { format, columns } = request as ExportPaymentsRequest
  const csv = csvOf(columns)
  const form = formOf(accept, format, csv)
  if (columns.length === 0 || form === csv) return form
  throw waybillError('INVALID_FIELD', { field: 'columns', detail: 'only CSV has columns: send format=csv' })
}

function formOf(accept: string | undefined, format: ExportPaymentsRequest_Format, csv: StreamFormat): StreamFormat {
  switch (format) {
    case ExportPaymentsRequest_Format.CSV:
      return csv
    case ExportPaymentsRequest_Format.NDJSON:
      return ndjson
    case ExportPaymentsRequest_Format.FORMAT_UNSPECIFIED:
      return chooseStreamFormat(accept, [ndjson, jsonLines('application/jsonl'), csv])
    default:
      // Other numbers are refused when the request is checked.
      return ndjson
  }
}

/** A column of an export as CSV: what stands in its cell; undefined for an unknown value. */
type Column = (line: PaymentLine) => unknown

const METADATA = 'metadata.'

/** The column `metadata.KEY`; undefined for another name. @throws WaybillError INVALID_METADATA */
function columnOfKey(name: string): Column | undefined {
  if (!name.startsWith(METADATA)) return undefined
  const key = requireMetadataKey('columns', name.slice(METADATA.length))
  // The keys are the customer's own: `constructor` is one.
  return ({ metadata }) => (Object.hasOwn(metadata, key) ? metadata[key] : undefined)
}

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
const csvColumns: ReadonlyMap<string, Column> = new Map(
  allowedTexts(ExportPaymentsRequestSchema.field.columns)
    .filter((name) => name !== `${METADATA}*`)
    .map((name) => [name, parts.get(name) ?? ((line) => line[name as keyof PaymentLine])]),
)

/** `platformFee`, `platformFeeCurrency` and `platformFeeInUSD`. */
function columnsOfFee(type: FeeType): [string, Column][] {
  const name = `${type.toLowerCase()}Fee`
  const linesOf = ({ fees }: PaymentLine) => fees.filter((fee) => fee.type === type)
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
