import {
  compareDecimals,
  type DecimalString,
  formatDecimal,
  readStoredDecimal,
  sumDecimals,
} from '../../domain/decimal.ts'
import { parseUuid } from '../../domain/identifiers.ts'
import {
  feeStages,
  feeTypes,
  type Payment,
  type PaymentRefund,
  paymentMarks,
  paymentStatuses,
  paymentTypes,
  type StatusChange,
} from '../../domain/payment.ts'
import {
  derivedPaymentFields,
  type FeeEntry,
  type GasEntry,
  isFinalStatus,
  type PaymentLine,
  type RateEntry,
  type RefundEntry,
} from '../../domain/payment-line.ts'
import { requireAmount } from '../../domain/require-input.ts'
import { waybillError } from '../../errors/waybill-error.ts'
import {
  listOf,
  objectOf,
  oneOf,
  type Reader,
  readAddress,
  readAmount,
  readBigCount,
  readBlockTime,
  readChainId,
  readFlag,
  readIndex,
  readMetadata,
  readNetwork,
  readPaymentReference,
  readReference,
  readRequestId,
  readString,
  readTime,
  readTimeText,
  readTxHash,
  textOf,
} from './read-fields.ts'

const MAX_NAME_LENGTH = 128

type Readers<Line> = { readonly [K in keyof Line]-?: Reader<unknown> }

const name = textOf(MAX_NAME_LENGTH)

const fee: Readers<FeeEntry> = {
  type: oneOf(feeTypes),
  stage: oneOf(feeStages),
  provider: name,
  amount: readAmount,
  currency: name,
  amountInUSD: readAmount,
  receiverAddress: readAddress,
  network: readNetwork,
}

const rate: Readers<RateEntry> = { from: name, to: name, rate: readAmount, source: name, at: readTimeText }

const gas: Readers<GasEntry> = {
  used: (path, value) => String(readBigCount(path, value)),
  price: readAmount,
  amount: readAmount,
  currency: name,
  amountInUSD: readAmount,
}

const refund: Readers<RefundEntry> = {
  amount: readAmount,
  currency: name,
  network: readNetwork,
  txHash: readTxHash,
  eventIndex: readIndex,
  timestamp: (path, value) => readBlockTime(path, value).toISOString(),
  recipient: readAddress,
  excess: readFlag,
}

const statusChange: Readers<StatusChange> = { status: oneOf(paymentStatuses), at: readTimeText }

const payment: Readers<PaymentLine> = {
  id: (path, value) => {
    const id = parseUuid(readString(path, value))
    if (id === undefined) throw waybillError('INVALID_PAYMENT_ID', { field: path, value: String(value) })
    return id
  },
  status: oneOf(paymentStatuses),
  confirmations: readIndex,
  type: oneOf(paymentTypes),
  timestamp: readBlockTime,
  updatedAt: readTime,
  amount: readAmount,
  currency: name,
  amountInUSD: readAmount,
  invoiceAmount: readAmount,
  invoiceCurrency: name,
  network: readNetwork,
  chainId: readChainId,
  txHash: readTxHash,
  blockNumber: readBigCount,
  eventIndex: readIndex,
  sourceNetwork: readNetwork,
  sourceTxHash: readTxHash,
  payer: readAddress,
  payee: readAddress,
  initiator: readAddress,
  tokenAddress: readAddress,
  requestId: readRequestId,
  paymentReference: readPaymentReference,
  reference: readReference,
  fees: listOf(objectOf({ fields: fee, required: ['type', 'stage', 'amount', 'currency'] })),
  exchangeRates: listOf(objectOf({ fields: rate, required: ['from', 'to', 'rate', 'source'] })),
  gas: objectOf({ fields: gas, required: ['amount', 'currency'] }),
  refunds: listOf(objectOf({ fields: refund, required: ['amount', 'currency', 'network', 'txHash'] })),
  refundedAmount: readAmount,
  statusHistory: listOf(objectOf({ fields: statusChange, required: ['status', 'at'] })),
  superseded: readFlag,
  marks: listOf(oneOf(paymentMarks)),
  metadata: readMetadata,
}

const readPayment = objectOf<Read>({
  fields: payment,
  required: ['id', 'timestamp', 'amount', 'currency', 'network', 'status'],
  derived: derivedPaymentFields,
})

/** A payment before defaults are filled in. It is completed in place, because copying such wide objects costs as much as parsing them. */
type Read = { -readonly [K in keyof Payment]?: Payment[K] | undefined } & Pick<
  Payment,
  'timestamp' | 'status' | 'amount'
>

/**
 * Parses a payment in the JSON form that search returns.
 *
 * A missing `refundedAmount` means the sum of the refunds, and at least all of a REFUNDED payment. A missing `updatedAt` means the payment's own time, so that a line means the same whenever it is imported. Confirmations of a payment
 * that is not final are ignored, because they keep growing.
 *
 * @param json - a parsed line
 * @param decimalsOf - the decimals of a currency id or ISO 4217 code, for the check against the largest amount
 * @throws WaybillError with the reason of the first field that is wrong
 */
export function parsePayment(json: unknown, decimalsOf: DecimalsOf = () => 0): Payment {
  const read = readPayment('', json)
  refuseUnholdable(read, decimalsOf)
  read.updatedAt ??= read.timestamp
  read.fees ??= []
  read.exchangeRates ??= []
  read.refunds = (read.refunds ?? []).map(toImported)
  read.refundedAmount ??= returnedBy(read)
  read.statusHistory ??= []
  read.marks ??= []
  if (!isFinalStatus(read.status)) delete read.confirmations
  return read as Payment
}

function toImported({ excess, ...entry }: Omit<PaymentRefund, 'excess'> & { excess?: boolean }): PaymentRefund {
  return { ...entry, ...(excess === true ? { excess } : {}), imported: true }
}

function returnedBy({ status, amount, refunds = [] }: Read): DecimalString {
  const listed = sumDecimals(refunds.map((refund) => readStoredDecimal(refund.amount)))
  return status === 'REFUNDED' && compareDecimals(listed, readStoredDecimal(amount)) < 0
    ? amount
    : formatDecimal(listed)
}

/** Tells the decimals of a currency. */
export type DecimalsOf = (currency: string) => number

/** Digits, with the point, of an amount that a contract can hold whatever its currency is: with 18 decimals 2^256 - 1 base units have 60 digits before it. */
const HOLDABLE_LENGTH = 59

/** Refuses what the amount filters of a search refuse: more than 2^256 - 1 base units. @throws WaybillError INVALID_AMOUNT */
function refuseUnholdable(read: Read, decimalsOf: DecimalsOf): void {
  const { amount, amountInUsd, invoiceAmount, invoiceCurrency = '', refundedAmount, currency = '', gas } = read
  const check = (field: string, value: string | undefined, of: string) => {
    if (value === undefined || value.length <= HOLDABLE_LENGTH) return
    requireAmount(field, value, { mayBeZero: true, fewestDecimals: decimalsOf(of) })
  }
  check('amount', amount, currency)
  check('amountInUSD', amountInUsd, 'USD')
  check('invoiceAmount', invoiceAmount, invoiceCurrency)
  check('refundedAmount', refundedAmount, currency)
  check('gas.amount', gas?.amount, gas?.currency ?? '')
  check('gas.amountInUSD', gas?.amountInUsd, 'USD')
  for (const [at, fee] of (read.fees ?? []).entries()) {
    check(`fees[${at}].amount`, fee.amount, fee.currency)
    check(`fees[${at}].amountInUSD`, fee.amountInUsd, 'USD')
  }
  for (const [at, refund] of (read.refunds ?? []).entries())
    check(`refunds[${at}].amount`, refund.amount, refund.currency)
}
