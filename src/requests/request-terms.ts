import { randomBytes } from 'node:crypto'
import type { ChainDirectory } from '../chains/chain-directory.ts'
import { configuredAddresses } from '../chains/configured-addresses.ts'
import { readCurrencyId, type TokenDirectory } from '../chains/token-directory.ts'
import { type Address, addressFamily, isZeroAddress, parseAddress } from '../domain/address.ts'
import { FIAT_DECIMALS, parseFiatCode, type Token } from '../domain/currency.ts'
import { parseDateBound } from '../domain/date-bound.ts'
import { explainAboveMaximum, formatDecimal, parseDecimal } from '../domain/decimal.ts'
import { parseRequestId, parseSalt, paymentReferenceOf } from '../domain/payment-reference.ts'
import type { PaymentRequest } from '../domain/payment-request.ts'
import { faultOfText } from '../domain/text-fault.ts'
import { waybillError } from '../errors/waybill-error.ts'

/** The terms as a caller sends them. */
export interface TermsInput {
  readonly payee: string
  readonly amount: string
  readonly invoiceCurrency: string
  readonly paymentCurrency: string
  /** Absent or empty where `paymentCurrency` is an id. */
  readonly network?: string | undefined
  readonly reference?: string | undefined
  readonly refundAddress?: string | undefined
  readonly requestId?: string | undefined
  readonly salt?: string | undefined
  /** RFC 3339, or a day, of which the end is meant. */
  readonly expiresAt?: string | undefined
}

/** Terms that were checked. */
export interface Terms
  extends Omit<PaymentRequest, 'createdAt' | 'cancelledAt' | 'requestId' | 'salt' | 'paymentReference'> {
  /** Absent when it is to be drawn. */
  readonly requestId?: string
  /** Absent when it is to be drawn, or matches any stored one. */
  readonly salt?: string
}

/** What the terms are checked against. */
export interface KnownCurrencies {
  readonly chains: ChainDirectory
  readonly tokens: TokenDirectory
}

/** The most characters of a merchant's own reference. */
const LONGEST_REFERENCE = 256

/**
 * Checks the terms of a request.
 *
 * @throws WaybillError with the reason of the first term that is wrong
 */
export function parseTerms(input: TermsInput, known: KnownCurrencies): Terms {
  const token = parsePaymentCurrency(input, known)
  const network = token.chain
  const invoice = parseInvoiceCurrency(input.invoiceCurrency, token, known)
  const payee = parseChainAddress('payee', input.payee, network, known)
  return {
    network,
    paymentCurrency: token.id,
    invoiceCurrency: invoice.currency,
    amount: parseRequestAmount(input.amount, invoice.decimals),
    payee,
    ...(input.refundAddress !== undefined && {
      refundAddress: parseRefundAddress(input.refundAddress, payee, network, known),
    }),
    ...(input.reference !== undefined && { reference: parseReference(input.reference) }),
    ...(input.requestId !== undefined && { requestId: parseGivenRequestId(input.requestId) }),
    ...(input.salt !== undefined && { salt: parseGivenSalt(input.salt) }),
    ...(input.expiresAt !== undefined && { expiresAt: parseExpiry(input.expiresAt) }),
  }
}

function parseNetwork(text: string, known: KnownCurrencies): string {
  const { chains } = known
  const resolved = chains.resolve(text)
  if (resolved.kind === 'unknown') {
    throw waybillError('UNKNOWN_NETWORK', { field: 'network', value: text, suggestion: resolved.suggest() })
  }
  if (resolved.kind === 'elsewhere' || chains.config(resolved.name) === undefined) {
    throw notConfigured('network', text, known)
  }
  return resolved.name
}

/** The token and so its chain: by `network`, or by an id alone. */
function parsePaymentCurrency({ paymentCurrency: text, network }: TermsInput, known: KnownCurrencies): Token {
  if (network === undefined || network === '') {
    const named = known.tokens.byId(text)
    if (named !== undefined) return named
    throw explainNoChain(text, known)
  }
  const chain = parseNetwork(network, known)
  const token = known.tokens.onChain(chain, text)
  if (token !== undefined) return token
  throw notOnNetwork(text, chain, known)
}

/** A symbol lacks its network, an id may be of a chain or token that is not served, and anything else is unknown. */
function explainNoChain(text: string, known: KnownCurrencies): Error {
  const { chains, tokens } = known
  if (tokens.bySymbol(text).length > 0) return waybillError('MISSING_FIELD', { field: 'network' })
  const [reading] = readCurrencyId(text, chains)
  if (reading === undefined) {
    return waybillError('UNKNOWN_CURRENCY', { field: 'paymentCurrency', value: text, suggestion: tokens.suggest(text) })
  }
  if (chains.config(reading.chain) === undefined) return notConfigured('paymentCurrency', reading.chain, known)
  return notOnNetwork(text, reading.chain, known)
}

function notOnNetwork(value: string, network: string, { tokens }: KnownCurrencies): Error {
  const ids = tokens.ofChain(network).map(({ id }) => id)
  return waybillError('CURRENCY_NOT_ON_NETWORK', { field: 'paymentCurrency', value, network, known: ids.join(', ') })
}

function notConfigured(field: string, value: string, { chains }: KnownCurrencies): Error {
  const names = chains.configured.map(({ name }) => name).join(', ')
  return waybillError('NETWORK_NOT_CONFIGURED', { field, value, known: names })
}

function parseInvoiceCurrency(
  text: string,
  token: Token,
  { tokens }: KnownCurrencies,
): { currency: string; decimals: number } {
  if (tokens.onChain(token.chain, text) === token) return { currency: token.id, decimals: token.decimals }
  const fiat = parseFiatCode(text)
  if (fiat !== undefined) return { currency: fiat, decimals: FIAT_DECIMALS }
  if (tokens.byId(text) !== undefined || tokens.bySymbol(text).length > 0) {
    throw waybillError('CURRENCY_MISMATCH', { invoiceCurrency: text, paymentCurrency: token.id })
  }
  throw waybillError('UNKNOWN_CURRENCY', { field: 'invoiceCurrency', value: text, suggestion: tokens.suggest(text) })
}

function parseRequestAmount(text: string, decimals: number): string {
  const fail = (detail: string) => waybillError('INVALID_AMOUNT', { field: 'amount', value: text, detail })
  const amount = parseDecimal(text)
  if (amount === undefined) throw fail('it is not a plain decimal number of at most 18 places')
  if (amount.units <= 0n) throw fail('it is not above 0')
  if (amount.places > decimals) throw fail(`it has more than the ${decimals} places of its currency`)
  const tooLarge = explainAboveMaximum(amount, decimals)
  if (tooLarge !== undefined) throw fail(tooLarge)
  return formatDecimal(amount)
}

function parseChainAddress(field: string, text: string, network: string, { chains }: KnownCurrencies): Address {
  const fail = (detail: string) => waybillError('INVALID_ADDRESS', { field, value: text, detail })
  const parsed = parseAddress(text)
  if (!parsed.ok) throw fail(parsed.detail)
  if (addressFamily(parsed.address) !== chains.familyOf(network)) throw fail(`it is not an address of ${network}`)
  if (isZeroAddress(parsed.address)) throw fail('it is the zero address, which nobody owns')
  const config = chains.config(network)
  const what = config && configuredAddresses(config).get(parsed.address)
  if (what !== undefined) throw waybillError('RECEIVER_IS_CONTRACT', { field, value: text, what, network })
  return parsed.address
}

/** The payee's own would have the payment reference itself, so that payments could not be told from refunds. */
function parseRefundAddress(text: string, payee: Address, network: string, known: KnownCurrencies): Address {
  const address = parseChainAddress('refundAddress', text, network, known)
  if (address !== payee) return address
  throw waybillError('REFUND_ADDRESS_IS_PAYEE', { field: 'refundAddress', value: text })
}

/** Reads the reference that a merchant gives a request. @throws WaybillError INVALID_REFERENCE */
export function parseReference(text: string): string {
  const detail = text === '' ? 'it is empty' : faultOfText(text, LONGEST_REFERENCE)
  if (detail !== undefined) throw waybillError('INVALID_REFERENCE', { field: 'reference', detail })
  return text
}

function parseGivenRequestId(text: string): string {
  const requestId = parseRequestId(text)
  if (requestId === undefined) throw waybillError('INVALID_REQUEST_ID', { field: 'requestId', value: text })
  return requestId
}

/** A day lasts until its end. Whether it is still to come is asked when the request is made: a line of an import may be older. */
function parseExpiry(text: string): Date {
  const parsed = parseDateBound(text)
  if (!parsed.ok) throw waybillError('INVALID_DATE', { field: 'expiresAt', value: text, detail: parsed.detail })
  return new Date(parsed.lastMs)
}

function parseGivenSalt(text: string): string {
  const salt = parseSalt(text)
  if (salt === undefined) throw waybillError('INVALID_SALT', { field: 'salt', value: text })
  return salt
}

/** Draws what the terms leave open and computes the payment reference. */
export function requestOfTerms(terms: Terms, createdAt: Date): PaymentRequest {
  const requestId = terms.requestId ?? `01${randomBytes(32).toString('hex')}`
  const salt = terms.salt ?? randomBytes(8).toString('hex')
  return { ...terms, requestId, salt, createdAt, paymentReference: paymentReferenceOf(requestId, salt, terms.payee) }
}

const comparedTerms = [
  'payee',
  'amount',
  'invoiceCurrency',
  'paymentCurrency',
  'network',
  'reference',
  'refundAddress',
  'expiresAt',
] as const

/** The names of the terms that differ from those of a stored request; an omitted salt matches. */
export function differingTerms(terms: Terms, stored: PaymentRequest): string[] {
  const different: string[] = comparedTerms.filter((name) => terms[name]?.valueOf() !== stored[name]?.valueOf())
  if (terms.salt !== undefined && terms.salt !== stored.salt) different.push('salt')
  return different
}
