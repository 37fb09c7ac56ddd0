import type { JsonObject, JsonValue, Message } from '@bufbuild/protobuf'
import { type ExportPaymentsRequest, ExportPaymentsRequest_Format } from '../../../gen/payments/v1/payment_export_pb.js'
import { derivedPaymentFields } from '../../domain/payment-line.ts'
import { chooseStreamFormat, type StreamFormat } from '../rest/stream-format.ts'

/**
 * The columns of an export as CSV, by the names that a payment has in JSON. Lists and objects are JSON in their cell.
 */
export const csvColumns = [
  'id',
  'status',
  'confirmations',
  'type',
  'timestamp',
  'updatedAt',
  'amount',
  'currency',
  'amountInUSD',
  'invoiceAmount',
  'invoiceCurrency',
  'network',
  'chainId',
  'txHash',
  'blockNumber',
  'eventIndex',
  'sourceNetwork',
  'sourceTxHash',
  'payer',
  'payee',
  'initiator',
  'tokenAddress',
  'requestId',
  'paymentReference',
  'reference',
  'refundedAmount',
  'fees',
  'exchangeRates',
  'gas',
  'refunds',
  'statusHistory',
] as const

/**
 * The lines that `waybill export payments` writes: what follows from the rest is left out. They are cut out of the JSON as it is, since to read
 * it and write it again would take most of the time of an export. Within a value every quote stands behind a backslash.
 */
function jsonLines(contentType: string): StreamFormat {
  return {
    contentType,
    headers: { 'content-disposition': 'attachment; filename="payments.ndjson"' },
    message: (json) => {
      const payments = json.slice(LIST_BEGIN.length, -LIST_END.length)
      return `${payments.replaceAll(derivedFields, '').replaceAll(',{"id":', '\n{"id":')}\n`
    },
    error: (json) => `{"error":${json}}\n`,
    end: '',
    heartbeat: '',
  }
}

const LIST_BEGIN = '{"payments":['
const LIST_END = ']}'

/** Each is followed by others: lists, which are always there, stand at the end. */
const derivedFields = new RegExp(
  String.raw`"(?:${[...derivedPaymentFields].join('|')})":(?:true|false|"(?:[^"\\]|\\.)*"),`,
  'g',
)

/** What spreadsheets take for a formula, fullwidth forms (= + - @) included, or would be read back as what this guards. */
const FORMULA = /^[=+\-@\uff1d\uff0b\uff0d\uff20'\t\r]/

/** RFC 4180. An export that breaks off ends with a line whose first cell is `error`, which no id is. */
const csv: StreamFormat = {
  contentType: 'text/csv; charset=utf-8; header=present',
  headers: { 'content-disposition': 'attachment; filename="payments.csv"' },
  begin: lineOf(csvColumns),
  message: (json) =>
    paymentsOf(json)
      .map((payment) => lineOf(csvColumns.map((name) => payment[name])))
      .join(''),
  error: (json) => {
    const { message, details } = JSON.parse(json) as { message: string; details: [{ reason: string }] }
    return lineOf(['error', details[0].reason, message, ...csvColumns.slice(3).map(() => undefined)])
  },
  end: '',
  heartbeat: '',
}

function paymentsOf(json: string): JsonObject[] {
  return (JSON.parse(json) as { payments: JsonObject[] }).payments
}

function lineOf(values: readonly (JsonValue | undefined)[]): string {
  return `${values.map(cellOf).join(',')}\r\n`
}

/**
 * Writes a cell; empty for what is unknown. Text that a spreadsheet would run is preceded by an apostrophe, and so is text that begins with
 * one: whoever reads the file takes away one apostrophe at the beginning, if there is any.
 */
function cellOf(value: JsonValue | undefined): string {
  if (value === undefined) return ''
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  const guarded = FORMULA.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(guarded) ? `"${guarded.replaceAll('"', '""')}"` : guarded
}

const forms = [jsonLines('application/x-ndjson'), jsonLines('application/jsonl'), csv] as const

/**
 * How an export is written over plain HTTP: as `format` says, else as `Accept` does.
 *
 * @throws WaybillError NOT_ACCEPTABLE
 */
export function chooseExportForm(accept: string | undefined, request: Message): StreamFormat {
  switch ((request as ExportPaymentsRequest).format) {
    case ExportPaymentsRequest_Format.CSV:
      return csv
    case ExportPaymentsRequest_Format.NDJSON:
      return forms[0]
    case ExportPaymentsRequest_Format.FORMAT_UNSPECIFIED:
      return chooseStreamFormat(accept, forms)
    default:
      // refused when the request is checked
      return forms[0]
  }
}
