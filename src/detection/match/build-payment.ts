import type { Token } from '../../domain/currency.ts'
import {
  type Decimal,
  type DecimalString,
  divideDecimals,
  formatAmount,
  formatDecimal,
  MAX_DECIMAL_PLACES,
  multiplyDecimals,
} from '../../domain/decimal.ts'
import { paymentIdOf } from '../../domain/identifiers.ts'
import type { ExchangeRate, PaymentFee, PaymentGas, PaymentMark } from '../../domain/payment.ts'
import type { UsdPrice } from '../read/block-prices.ts'
import type { TransactionReceipt } from '../read/chain-reader.ts'
import type { DetectedPayment, DetectedRefund, Lack, PlacedSighting } from './detected.ts'
import type { ObservedChain } from './followed-contracts.ts'
import { isConversionRequest, type Match, type PaymentMatch } from './match-event.ts'
import type { SeenEvent } from './read-transaction.ts'

type RefundMatch = Extract<Match, { kind: 'REFUND' }>

/** What a payment is built from. */
interface PaymentParts {
  /** The account's name. */
  readonly account: string
  readonly chain: ObservedChain
  readonly match: PaymentMatch
  readonly event: SeenEvent
  readonly receipt: TransactionReceipt
  readonly timestamp: Date
  readonly tokenPrice: UsdPrice | undefined
  readonly nativePrice: UsdPrice | undefined
  /** What the chain's oracle says of the payer. */
  readonly marks: readonly PaymentMark[]
}

/** Builds a payment as it is stored. USD fields are absent where no price is known. */
export function buildPayment(parts: PaymentParts): DetectedPayment {
  const { account, chain, match, event, receipt } = parts
  const { request, token } = match
  const sighting = sightingOf(event, receipt, parts.timestamp)
  const amount: Decimal = { units: match.amount, places: token.decimals }
  const rates = conversionRates(parts)
  const usd = usdWorth(parts)
  return {
    ...sighting,
    id: paymentIdOf({ account, chainId: chain.chainId, txHash: receipt.txHash, eventIndex: event.eventIndex }),
    requestId: request.requestId,
    type: typeOf(parts),
    amount: formatDecimal(amount),
    currency: token.id,
    amountInUsd: usd.worth(amount),
    invoiceAmount: formatAmount(match.invoiceAmount, match.invoiceDecimals),
    invoiceCurrency: request.invoiceCurrency,
    payer: event.payer,
    payee: event.to,
    initiator: receipt.from,
    tokenAddress: token.address,
    paymentReference: request.paymentReference,
    reference: request.reference,
    fees: feesOf(parts, usd),
    exchangeRates: [...rates, ...usd.rates, ...nativeRates(parts)],
    gas: gasOf(parts),
    marks: parts.marks,
  } satisfies Readonly<Record<keyof DetectedPayment, unknown>>
}

/** Builds a refund as it is stored. */
export function buildRefund(
  match: RefundMatch,
  event: SeenEvent,
  receipt: TransactionReceipt,
  timestamp: Date,
): DetectedRefund {
  return {
    ...sightingOf(event, receipt, timestamp),
    requestId: match.request.requestId,
    amount: formatAmount(match.amount, match.token.decimals),
    currency: match.token.id,
    recipient: event.to,
  }
}

function typeOf({ event, match }: PaymentParts): DetectedPayment['type'] {
  if (event.isCarried) return 'CROSSCHAIN'
  return isConversionRequest(match.request) ? 'CONVERSION' : 'DIRECT'
}

function sightingOf(event: SeenEvent, receipt: TransactionReceipt, timestamp: Date): PlacedSighting {
  const { txHash, blockNumber } = receipt
  return { txHash, eventIndex: event.eventIndex, blockNumber, logIndex: event.logIndex, timestamp }
}

/** The rate of a conversion as its transaction made it: units of the payment currency for one unit of the invoice currency. */
function conversionRates({ match, event, timestamp }: PaymentParts): ExchangeRate[] {
  if (event.conversion === undefined || event.conversion.amount === 0n) return []
  const invoice = { units: event.conversion.amount, places: match.invoiceDecimals }
  const rate = divideDecimals({ units: event.amount, places: match.token.decimals }, invoice, MAX_DECIMAL_PLACES)
  return [
    {
      from: match.request.invoiceCurrency,
      to: match.token.id,
      rate: formatDecimal(rate),
      source: 'conversion',
      at: timestamp.toISOString(),
    },
  ]
}

interface UsdWorth {
  /** What an amount of the payment currency is worth in US dollars, with at most 18 places. */
  worth(amount: Decimal): DecimalString | undefined
  /** The rates that this used, except that of a conversion. */
  readonly rates: readonly ExchangeRate[]
}

/** Takes the rate of the conversion where the invoice is in US dollars, else the token's price. */
function usdWorth(parts: PaymentParts): UsdWorth {
  const { match, event, tokenPrice } = parts
  const { conversion } = event
  if (conversion !== undefined && match.request.invoiceCurrency === 'USD' && event.amount > 0n) {
    const whole = { units: event.amount, places: match.token.decimals }
    const dollars = { units: conversion.amount, places: match.invoiceDecimals }
    const worth = (amount: Decimal) => {
      const numerator = { units: amount.units * dollars.units, places: amount.places + dollars.places }
      return formatDecimal(divideDecimals(numerator, whole, MAX_DECIMAL_PLACES))
    }
    return { worth, rates: [] }
  }
  if (tokenPrice === undefined) return { worth: () => undefined, rates: [] }
  return {
    worth: (amount) => formatDecimal(multiplyDecimals(amount, tokenPrice.usd, MAX_DECIMAL_PLACES)),
    rates: [usdRate(match.token, tokenPrice)],
  }
}

function usdRate(token: Token, price: UsdPrice): ExchangeRate {
  const { usd, source, at } = price
  const rate = formatDecimal(usd)
  return { from: token.id, to: 'USD', rate, source, ...(at === undefined ? {} : { at: at.toISOString() }) }
}

/** The price of the coin, by which the gas was valued; none where the payment's own rate is the same price. */
function nativeRates(parts: PaymentParts): ExchangeRate[] {
  const { chain, nativePrice, match, event, receipt } = parts
  const { native } = chain
  if (nativePrice === undefined || lacksOfGas(receipt, chain).length > 0) return []
  const isListed = match.token.id === native.id && !(event.conversion && match.request.invoiceCurrency === 'USD')
  return isListed ? [] : [usdRate(native, nativePrice)]
}

/** One line for each fee that was received, with the amount received: some tokens keep a part of each transfer. */
function feesOf({ match, event }: PaymentParts, usd: UsdWorth): PaymentFee[] {
  const received = [
    { type: 'PLATFORM', units: event.feeReceived },
    { type: 'PROTOCOL', provider: 'request-network', units: event.swapFeeReceived },
  ] as const
  return received
    .filter(({ units }) => units > 0n)
    .map(({ units, ...line }) => {
      const fee = { units, places: match.token.decimals }
      const amountInUsd = usd.worth(fee)
      return {
        ...line,
        stage: 'SENDING',
        amount: formatDecimal(fee),
        currency: match.token.id,
        ...(amountInUsd === undefined ? {} : { amountInUsd }),
        receiverAddress: event.feeAddress,
        network: match.token.chain,
      }
    })
}

/** What a receipt does not tell of the cost of its transaction. */
export function lacksOfGas(
  { effectiveGasPrice, l1Fee, isDeposit }: TransactionReceipt,
  { hasL1Fee }: Pick<ObservedChain, 'hasL1Fee'>,
): Lack[] {
  return [
    ...(effectiveGasPrice === undefined ? (['GAS'] as const) : []),
    ...(hasL1Fee && l1Fee === undefined && !isDeposit ? (['L1_FEE'] as const) : []),
  ]
}

/** What the transaction cost its sender, L1 fee included; unknown where the node tells no gas price, or no L1 fee though the chain has one. */
function gasOf({ receipt, chain, nativePrice }: PaymentParts): PaymentGas | undefined {
  const { native } = chain
  if (receipt.effectiveGasPrice === undefined || lacksOfGas(receipt, chain).length > 0) return undefined
  const wei = receipt.gasUsed * receipt.effectiveGasPrice + (receipt.l1Fee ?? 0n)
  const amount = { units: wei, places: native.decimals }
  const inUsd = nativePrice && formatDecimal(multiplyDecimals(amount, nativePrice.usd, MAX_DECIMAL_PLACES))
  return {
    used: receipt.gasUsed.toString(),
    price: formatAmount(receipt.effectiveGasPrice, native.decimals),
    amount: formatDecimal(amount),
    currency: native.id,
    ...(inUsd === undefined ? {} : { amountInUsd: inUsd }),
  }
}
