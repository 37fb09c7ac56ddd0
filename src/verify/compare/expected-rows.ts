import type { ChainConfig } from '../../chains/chains-file.ts'
import type { TokenDirectory } from '../../chains/token-directory.ts'
import { type Address, addressFromBytes } from '../../domain/address.ts'
import { caip2Of } from '../../domain/chain.ts'
import { symbolOfCurrency } from '../../domain/currency.ts'
import { formatAmount, formatDecimal, trimNumeric } from '../../domain/decimal.ts'
import { bytesToHex } from '../../domain/hex.ts'
import { type PaymentFee, type PaymentRefund, statusOfRank, typeOfCode } from '../../domain/payment.ts'
import { paymentIdOf } from '../../domain/payment-id.ts'
import type { PaymentRow } from '../../store/payment-row.ts'
import type { RefundRow } from '../../store/settle-requests.ts'
import type { EventFact } from '../rules/chain-facts.ts'
import type { Verdict } from '../rules/judge-event.ts'
import type { UnmatchedRow } from '../sql/stored-rows.ts'

/** The values of a row as texts, by field; unknown ones are absent. Rows are compared in this form. */
export type FieldTexts = Readonly<Record<string, string | undefined>>

/** The chain of the rows. */
export interface RowChain {
  readonly chain: ChainConfig
  readonly tokens: TokenDirectory
}

type PaymentVerdict = Extract<Verdict, { kind: 'PAYMENT' }>
type RefundVerdict = Extract<Verdict, { kind: 'REFUND' }>

/** The expected row of a payment, without status, refunds and values in US dollars. */
export function paymentTexts(
  { chain, tokens }: RowChain,
  fact: EventFact,
  { request, token, amount, counted }: PaymentVerdict,
  account: string,
): FieldTexts {
  const { event, txHash } = fact
  const chainId = caip2Of(chain.chainId)
  const isConversion = request.invoiceCurrency !== request.paymentCurrency
  return {
    id: paymentIdOf({ account, chainId, txHash, eventIndex: event.eventIndex }),
    requestId: request.requestId,
    type: fact.isCarried ? 'CROSSCHAIN' : isConversion ? 'CONVERSION' : 'DIRECT',
    amount: formatDecimal(amount),
    currency: token.id,
    currencySymbol: symbolOfCurrency(token.id),
    invoiceAmount: formatDecimal(counted),
    invoiceCurrency: request.invoiceCurrency,
    network: chain.name,
    chainId,
    blockNumber: String(fact.blockNumber),
    eventIndex: String(event.eventIndex),
    logIndex: String(event.logIndex),
    timestamp: timeText(new Date(fact.timestampSec * 1_000)),
    payer: fact.payer,
    payee: event.to,
    initiator: fact.initiator,
    tokenAddress: token.address,
    paymentReference: request.paymentReference,
    reference: request.reference,
    fees: feesText(platformFee({ chain, tokens }, fact)),
    gas: gasText({ chain, tokens }, fact),
    sourceNetwork: fact.isCarried ? undefined : chain.name,
    sourceTxHash: fact.isCarried ? undefined : txHash,
    detected: 'true',
    final: 'true',
  }
}

function platformFee({ chain }: RowChain, { event, token }: EventFact): PaymentFee[] {
  if (event.feeReceived === 0n || token === undefined) return []
  return [
    {
      type: 'PLATFORM',
      stage: 'SENDING',
      amount: formatAmount(event.feeReceived, token.decimals),
      currency: token.id,
      receiverAddress: event.feeAddress,
      network: chain.name,
    },
  ]
}

/**
 * Finds a stored fee of a swap or a batch for which the transaction has no Transfer. Which payment of a batch has the fee is not compared.
 *
 * @returns undefined where there is none
 */
export function inventedFee({ fees }: PaymentRow, { feesBeside, token, event }: EventFact): string | undefined {
  if (feesBeside === undefined || token === undefined) return undefined
  const made = new Set(feesBeside.map((value) => formatAmount(value, token.decimals)))
  const invented = fees.find(
    ({ type, amount, receiverAddress }) =>
      type === 'PROTOCOL' && !(made.has(amount) && receiverAddress === event.feeAddress),
  )
  return invented && `${invented.type} ${invented.amount} ${invented.currency} ${invented.receiverAddress ?? ''}`
}

/** Platform fees, without values in US dollars. For those of swaps and batches see {@link inventedFee}. */
function feesText(fees: readonly PaymentFee[]): string {
  return fees
    .filter(({ type }) => type === 'PLATFORM')
    .map(({ type, amount, currency, receiverAddress = '' }) => [type, amount, currency, receiverAddress].join(' '))
    .join(', ')
}

function gasText({ chain, tokens }: RowChain, { gas }: EventFact): string | undefined {
  const native = tokens.native(chain.name)
  if (gas.effectiveGasPrice === undefined || native === undefined) return undefined
  // Without the fee for the parent chain, the cost of the transaction is unknown.
  if (chain.l1Fee === 'OP_STACK' && gas.l1Fee === undefined && !gas.isDeposit) return undefined
  const wei = gas.gasUsed * gas.effectiveGasPrice + (gas.l1Fee ?? 0n)
  const price = formatAmount(gas.effectiveGasPrice, native.decimals)
  return `${gas.gasUsed} at ${price}, ${formatAmount(wei, native.decimals)} ${native.id}`
}

/** The same of a stored row. */
export function storedPaymentTexts(row: PaymentRow): FieldTexts {
  const { gas } = row
  return {
    id: row.id,
    requestId: row.request_id?.toString('hex'),
    type: row.type === null ? undefined : typeOfCode(row.type),
    amount: trimNumeric(row.amount),
    currency: row.currency,
    currencySymbol: row.currency_symbol,
    invoiceAmount: row.invoice_amount === null ? undefined : trimNumeric(row.invoice_amount),
    invoiceCurrency: row.invoice_currency ?? undefined,
    network: row.network,
    chainId: row.chain_id ?? undefined,
    blockNumber: row.block_number?.toString(),
    eventIndex: row.event_index?.toString(),
    logIndex: row.log_index?.toString(),
    timestamp: timeText(row.timestamp),
    payer: addressText(row.payer),
    payee: addressText(row.payee),
    initiator: addressText(row.initiator),
    tokenAddress: addressText(row.token_address),
    paymentReference: row.payment_reference === null ? undefined : bytesToHex(row.payment_reference),
    reference: row.reference ?? undefined,
    fees: feesText(row.fees),
    gas: gas === null ? undefined : `${gas.used} at ${gas.price}, ${gas.amount} ${gas.currency}`,
    sourceNetwork: row.source_network ?? undefined,
    sourceTxHash: row.source_tx_hash === null ? undefined : bytesToHex(row.source_tx_hash),
    detected: String(row.detected),
    final: String(row.final),
  }
}

/** Status and refunds of a stored payment. */
export function storedStanding(row: PaymentRow): FieldTexts {
  const status = statusOfRank(row.status)
  return {
    status,
    refunds: refundsText(row.refunds),
    refundedAmount: trimNumeric(row.refunded_amount),
    statusHistory: row.status_history.at(-1)?.status ?? status,
  }
}

/** Refunds of a payment as one text, in a fixed order. */
export function refundsText(
  refunds: readonly (Pick<PaymentRefund, 'txHash' | 'eventIndex'> & {
    readonly amount: string
    readonly excess?: boolean
  })[],
): string {
  return refunds
    .map(({ amount, txHash, eventIndex = '', excess }) => [
      `${amount} by ${txHash}`,
      eventIndex,
      excess ? 'excess' : '',
    ])
    .map((words) => words.join(' ').trim())
    .toSorted()
    .join(', ')
}

/** The expected row of a refund. */
export function refundTexts(fact: EventFact, { request, token, amount }: RefundVerdict): FieldTexts {
  return {
    requestId: request.requestId,
    amount: formatDecimal(amount),
    currency: token.id,
    recipient: fact.event.to,
    blockNumber: String(fact.blockNumber),
    logIndex: String(fact.event.logIndex),
    timestamp: timeText(new Date(fact.timestampSec * 1_000)),
    final: 'true',
  }
}

export function storedRefundTexts(row: RefundRow): FieldTexts {
  return {
    requestId: row.request_id.toString('hex'),
    amount: trimNumeric(row.amount),
    currency: row.currency,
    recipient: addressText(row.recipient),
    blockNumber: row.block_number.toString(),
    logIndex: row.log_index?.toString(),
    timestamp: timeText(row.timestamp),
    final: String(row.final),
  }
}

/** The expected row of an unmatched event. */
export function unmatchedTexts(
  { blockNumber, timestampSec, event }: Pick<EventFact, 'blockNumber' | 'timestampSec' | 'event'>,
  reason: string,
): FieldTexts {
  return {
    reason,
    topic: event.topic,
    blockNumber: String(blockNumber),
    timestamp: timeText(new Date(timestampSec * 1_000)),
    emitter: event.emitter,
    token: event.token,
    to: event.to,
    amount: event.amount.toString(),
    feeAmount: event.feeAmount.toString(),
    feeAddress: event.feeAddress,
    ...(reason === 'UNKNOWN_TOPIC'
      ? {}
      : { invoiceAmount: event.conversion?.amount.toString(), invoiceCurrency: event.conversion?.currency }),
  }
}

export function storedUnmatchedTexts(row: UnmatchedRow): FieldTexts {
  const { emitter, token, to, amount, feeAmount, feeAddress, invoiceAmount, invoiceCurrency } = row.event
  return {
    reason: row.reason,
    topic: bytesToHex(row.topic),
    blockNumber: row.block_number.toString(),
    timestamp: timeText(row.timestamp),
    emitter,
    token,
    to,
    amount,
    feeAmount,
    feeAddress,
    ...(row.reason === 'UNKNOWN_TOPIC' ? {} : { invoiceAmount, invoiceCurrency }),
  }
}

function timeText(time: Date): string {
  return time.toISOString().replace('.000Z', 'Z')
}

function addressText(bytes: Buffer | null): Address | undefined {
  return bytes === null ? undefined : addressFromBytes(bytes)
}
