import { type Address, addressFamily, addressToBytes } from '../domain/address.ts'
import { symbolOfCurrency } from '../domain/currency.ts'
import { codeOfType, type Payment, rankOfStatus } from '../domain/payment.ts'
import { escapeCopyText } from '../postgres/copy-rows.ts'
import { paymentColumns, type RowOrigin } from './payment-row.ts'

/** Writes a column in the text format of COPY. */
type CopyText = (payment: Payment, origin: RowOrigin) => string

const NULL = '\\N'

/** Gives the same text as `encodeCopyRow` for the payment's row, without building the row. An import spends most of its time here. */
const texts: { readonly [C in (typeof paymentColumns)[number]]: CopyText } = {
  account_id: (_, origin) => String(origin.account_id),
  imported: (_, origin) => String(origin.imported),
  detected: (_, origin) => String(origin.detected),
  final: (_, origin) => String(origin.final),
  line_hash: (_, { line_hash: hash }) => (hash === null ? NULL : `\\\\x${hash.toString('hex')}`),
  line_updated_at: (_, { line_updated_at: at }) => at?.toISOString() ?? NULL,
  id: ({ id }) => id,
  status: ({ status }) => String(rankOfStatus(status)),
  type: ({ type }) => (type === undefined ? NULL : String(codeOfType(type))),
  event_index: ({ eventIndex }) => (eventIndex === undefined ? NULL : String(eventIndex)),
  log_index: () => NULL,
  block_number: ({ blockNumber }) => (blockNumber === undefined ? NULL : String(blockNumber)),
  confirmations: ({ confirmations }) => (confirmations === undefined ? NULL : String(confirmations)),
  timestamp: ({ timestamp }) => timestamp.toISOString(),
  updated_at: ({ updatedAt }) => updatedAt.toISOString(),
  network: ({ network }) => escapeCopyText(network),
  source_network: ({ sourceNetwork }) => textOf(sourceNetwork),
  chain_id: ({ chainId }) => textOf(chainId),
  currency: ({ currency }) => escapeCopyText(currency),
  currency_symbol: ({ currency }) => escapeCopyText(symbolOfCurrency(currency)),
  invoice_currency: ({ invoiceCurrency }) => textOf(invoiceCurrency),
  amount: ({ amount }) => amount,
  amount_in_usd: ({ amountInUsd }) => amountInUsd ?? NULL,
  invoice_amount: ({ invoiceAmount }) => invoiceAmount ?? NULL,
  refunded_amount: ({ refundedAmount }) => refundedAmount,
  tx_hash: ({ txHash }) => bytesOf(txHash),
  source_tx_hash: ({ sourceTxHash }) => bytesOf(sourceTxHash),
  payer: ({ payer }) => addressOf(payer),
  payee: ({ payee }) => addressOf(payee),
  initiator: ({ initiator }) => addressOf(initiator),
  token_address: ({ tokenAddress }) => addressOf(tokenAddress),
  request_id: ({ requestId }) => (requestId === undefined ? NULL : `\\\\x${requestId}`),
  payment_reference: ({ paymentReference }) => bytesOf(paymentReference),
  reference: ({ reference }) => textOf(reference),
  fees: ({ fees }) => jsonOf(fees),
  exchange_rates: ({ exchangeRates }) => jsonOf(exchangeRates),
  gas: ({ gas }) => (gas === undefined ? NULL : jsonOf(gas)),
  refunds: ({ refunds }) => jsonOf(refunds),
  status_history: ({ statusHistory }) => jsonOf(statusHistory),
  superseded: ({ superseded = false }) => String(superseded),
}

const encoders = paymentColumns.map((column) => texts[column])

/** Writes a payment as a row for COPY into {@link paymentColumns}, with its end of line. */
export function encodePaymentRow(payment: Payment, origin: RowOrigin): Buffer {
  let text = ''
  for (const encode of encoders) text += text === '' ? encode(payment, origin) : `\t${encode(payment, origin)}`
  return Buffer.from(`${text}\n`)
}

/** Gives a request to the row of a payment without one. It stands in the last column. */
export function nameRequestOfRow(row: Buffer, requestId: string): Buffer {
  return Buffer.concat([row.subarray(0, -`${NULL}\n`.length), Buffer.from(`\\\\x${requestId}\n`)])
}

function textOf(text: string | undefined): string {
  return text === undefined ? NULL : escapeCopyText(text)
}

/** @param hex - `0x` and digits */
function bytesOf(hex: string | undefined): string {
  return hex === undefined ? NULL : `\\\\x${hex.slice(2)}`
}

function addressOf(address: Address | undefined): string {
  if (address === undefined) return NULL
  return addressFamily(address) === 'EVM'
    ? `\\\\x01${address.slice(2)}`
    : `\\\\x${addressToBytes(address).toString('hex')}`
}

function jsonOf(value: object): string {
  return Array.isArray(value) && value.length === 0 ? '[]' : escapeCopyText(JSON.stringify(value))
}
