import type { Message } from '@bufbuild/protobuf'
import { type ExportPaymentsRequest, ExportPaymentsRequest_Format } from '../../../gen/payments/v1/payment_export_pb.js'
import { formatPaymentLine, type PaymentLine, toPaymentLine } from '../../domain/payment-line.ts'
import { httpErrorBody } from '../calls/error-mapping.ts'
import { chooseStreamFormat, type StreamFormat } from '../rest/stream-format.ts'
import { paymentsOf } from './export-handler.ts'

/** The columns of an export as CSV, by the names of a payment's line. Lists and objects are JSON in their cell. */
const csvColumns = [
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
] as const satisfies readonly (keyof PaymentLine)[]

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
    end: '',
    heartbeat: '',
  }
}

/** Characters that make a spreadsheet run a cell as a formula, with the fullwidth = + - @, and the apostrophe that guards against it. */
const FORMULA = /^[=+\-@\uff1d\uff0b\uff0d\uff20'\t\r]/

/** RFC 4180. An export that fails ends with a line whose first cell is `error`, which is no payment's id. */
const csv: StreamFormat = {
  contentType: 'text/csv; charset=utf-8; header=present',
  headers: { 'content-disposition': 'attachment; filename="payments.csv"' },
  begin: lineOf(csvColumns),
  message: (answer) =>
    paymentsOf(answer)
      .map(toPaymentLine)
      .map((line) => lineOf(csvColumns.map((name) => line[name])))
      .join(''),
  error: ({ reason, message }) => lineOf(csvColumns.map((_, at) => ['error', reason, message][at])),
  end: '',
  heartbeat: '',
}

function lineOf(values: readonly unknown[]): string {
  return `${values.map(cellOf).join(',')}\r\n`
}

/**
 * Writes a cell, which is empty for an unknown value. A text that a spreadsheet would run gets an apostrophe in front, and so does a text
 * that begins with one: a reader gets the stored value back by removing one leading apostrophe.
 */
function cellOf(value: unknown): string {
  if (value === undefined) return ''
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  const guarded = FORMULA.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(guarded) ? `"${guarded.replaceAll('"', '""')}"` : guarded
}

const forms = [jsonLines('application/x-ndjson'), jsonLines('application/jsonl'), csv] as const

/**
 * Chooses the form of an export over plain HTTP: by `format`, else by `Accept`.
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
      // Other numbers are refused when the request is checked.
      return forms[0]
  }
}
