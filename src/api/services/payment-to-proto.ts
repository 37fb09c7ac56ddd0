import type { MessageInitShape } from '@bufbuild/protobuf'
import { FeeLine_Stage, FeeLine_Type } from '../../../gen/payments/v1/fee_line_pb.js'
import {
  type Payment_LinksSchema,
  Payment_Mark,
  Payment_Status,
  Payment_Type,
  type Payment as PaymentMessage,
  type PaymentSchema,
} from '../../../gen/payments/v1/payment_pb.js'
import { type FindExplorer, linkAddress, linkTransaction, noExplorer } from '../../chains/explorer.ts'
import { formatAddress, formatStoredAddress } from '../../domain/address.ts'
import { formatTxHash } from '../../domain/chain.ts'
import { given } from '../../domain/collections.ts'
import type { ExchangeRate, Payment, PaymentFee, PaymentGas, PaymentRefund } from '../../domain/payment.ts'

type PaymentInit = MessageInitShape<typeof PaymentSchema>

/** Turns a payment into its message: addresses in the form of their family, unknown fields absent. */
export type PaymentToProto = (payment: Payment) => PaymentInit

/** Makes {@link PaymentToProto} with links to the explorers of the chains. */
export function createPaymentToProto(findExplorer: FindExplorer = noExplorer): PaymentToProto {
  return (payment) => {
    const message = paymentToProto(payment)
    const links = linksOf(message, findExplorer)
    return links === undefined ? message : { ...message, links }
  }
}

function linksOf(
  { network, sourceNetwork = network, txHash, sourceTxHash, payer, payee }: ReturnType<typeof paymentToProto>,
  findExplorer: FindExplorer,
): MessageInitShape<typeof Payment_LinksSchema> | undefined {
  const [destination, source] = [findExplorer(network), findExplorer(sourceNetwork)]
  if (destination === undefined && source === undefined) return undefined
  return {
    transaction: linkTransaction(destination, txHash),
    sourceTransaction: linkTransaction(source, sourceTxHash),
    payer: linkAddress(source, payer),
    payee: linkAddress(destination, payee),
  }
}

function paymentToProto(payment: Payment) {
  const { network, txHash, sourceNetwork, sourceTxHash, blockNumber } = payment
  return {
    id: payment.id,
    status: Payment_Status[payment.status],
    completed: payment.status === 'CONFIRMED' && payment.superseded !== true,
    confirmations: payment.confirmations,
    type: given(payment.type, (type) => Payment_Type[type]),
    timestamp: timeOfDate(payment.timestamp),
    updatedAt: timeOfDate(payment.updatedAt),
    changedAt: payment.changedAt && timeOfDate(payment.changedAt),
    amount: payment.amount,
    currency: payment.currency,
    amountInUsd: payment.amountInUsd,
    invoiceAmount: payment.invoiceAmount,
    invoiceCurrency: payment.invoiceCurrency,
    network,
    chainId: payment.chainId,
    txHash: given(txHash, (hash) => formatTxHash(network, hash)),
    blockNumber,
    eventIndex: payment.eventIndex,
    sourceNetwork,
    destinationNetwork: network,
    sourceTxHash: given(sourceTxHash, (hash) => formatTxHash(sourceNetwork ?? network, hash)),
    destinationTxHash: given(txHash, (hash) => formatTxHash(network, hash)),
    payer: given(payment.payer, formatAddress),
    payee: given(payment.payee, formatAddress),
    initiator: given(payment.initiator, formatAddress),
    tokenAddress: given(payment.tokenAddress, formatAddress),
    requestId: payment.requestId,
    paymentReference: payment.paymentReference,
    reference: payment.reference,
    fees: payment.fees.map(feeToProto),
    exchangeRates: payment.exchangeRates.map(rateToProto),
    gas: given(payment.gas, gasToProto),
    refunds: payment.refunds.map(refundToProto),
    refundedAmount: payment.refundedAmount,
    statusHistory: payment.statusHistory.map(({ status, at }) => ({ status: Payment_Status[status], at: timeOf(at) })),
    superseded: payment.superseded,
    marks: payment.marks.map((mark) => Payment_Mark[mark]),
    metadata: payment.metadata ?? {},
  } satisfies Readonly<Record<Exclude<keyof PaymentMessage, '$typeName' | '$unknown' | 'links'>, unknown>>
}

function feeToProto(fee: PaymentFee) {
  return {
    type: FeeLine_Type[fee.type],
    stage: FeeLine_Stage[fee.stage],
    provider: fee.provider,
    amount: fee.amount,
    currency: fee.currency,
    amountInUsd: fee.amountInUsd,
    receiverAddress: given(fee.receiverAddress, formatStoredAddress),
    network: fee.network,
  }
}

function rateToProto({ from, to, rate, source, at }: ExchangeRate) {
  return { from, to, rate, source, at: given(at, timeOf) }
}

function gasToProto({ used, price, amount, currency, amountInUsd }: PaymentGas) {
  return { used: given(used, BigInt), price, amount, currency, amountInUsd }
}

function refundToProto({ amount, currency, network, txHash, eventIndex, timestamp, ...rest }: PaymentRefund) {
  return {
    amount,
    currency,
    network,
    txHash: formatTxHash(network, txHash),
    eventIndex,
    timestamp: given(timestamp, timeOf),
    recipient: given(rest.recipient, formatStoredAddress),
    excess: rest.excess,
  }
}

function timeOf(iso: string): TimeInit {
  return timeOfMs(Date.parse(iso))
}

function timeOfDate(date: Date): TimeInit {
  return timeOfMs(date.getTime())
}

/** The fields of a Timestamp. Creating a message for each time of a page would take as long as everything else. */
interface TimeInit {
  readonly seconds: bigint
  readonly nanos: number
}

function timeOfMs(ms: number): TimeInit {
  const seconds = Math.floor(ms / 1000)
  return { seconds: BigInt(seconds), nanos: (ms - seconds * 1000) * 1_000_000 }
}
