import { createHash, randomBytes } from 'node:crypto'
import type { ChainDirectory } from '../../chains/chain-directory.ts'
import { receiverChain } from '../../chains/configured-addresses.ts'
import { notConfigured, requireConfigured, requireTokenOn } from '../../chains/resolve-names.ts'
import { readCurrencyId, type TokenDirectory } from '../../chains/token-directory.ts'
import type { Address } from '../../domain/address.ts'
import { given } from '../../domain/collections.ts'
import { FIAT_DECIMALS, parseFiatCode, type Token } from '../../domain/currency.ts'
import { type Decimal, formatDecimal } from '../../domain/decimal.ts'
import { paymentReferenceOf } from '../../domain/identifiers.ts'
import type { Metadata, PaymentRequest, RequestUpdate } from '../../domain/payment-request.ts'
import type { TermsInput } from '../../domain/request-line.ts'
import {
  type AmountRule,
  explainReceiver,
  requireAddress,
  requireAmount,
  requireDate,
  requireFewValues,
  requireMerchantReference,
  requireMetadata,
  requireMetadataChanges,
  requirePaymentReference,
  requireReceiver,
  requireRequestId,
  requireReturnUrl,
  requireSalt,
  requireTitle,
} from '../../domain/require-input.ts'
import { readAll, readEach, readOnce } from '../../errors/gather-errors.ts'
import { type WaybillError, waybillError } from '../../errors/waybill-error.ts'

/** Checked terms. What was not given is undefined. */
export interface Terms
  extends Omit<PaymentRequest, 'createdAt' | 'cancelledAt' | 'requestId' | 'salt' | 'paymentReference'> {
  /** Undefined when it is to be drawn. */
  readonly requestId?: string | undefined
  /** Undefined when it is to be drawn. Then it matches the salt of any stored request. */
  readonly salt?: string | undefined
}

/** What the terms are checked against. */
export interface KnownCurrencies {
  readonly chains: ChainDirectory
  readonly tokens: TokenDirectory
}

/**
 * Checks the terms of a request.
 *
 * @throws one WaybillError for all terms that are wrong, with the reason of the first
 */
export function parseTerms(input: TermsInput, known: KnownCurrencies): Terms {
  const token = readOnce(() => parsePaymentCurrency(input, known))
  const chain = () => token().chain
  const invoiceCurrency = readOnce(() => parseInvoiceCurrency(input.invoiceCurrency, token(), known))
  const payee = readOnce(() => parseReceiver('payee', input.payee, chain, known))
  return readAll({
    network: chain,
    paymentCurrency: () => token().id,
    invoiceCurrency: () => invoiceCurrency().id,
    payee,
    amount: () => parseAmount(input.amount, invoiceCurrency),
    refundAddress: () => given(input.refundAddress, (text) => parseRefundAddress(text, { payee, chain }, known)),
    allowedPayers: () => parseAllowedPayers(input.allowedPayers ?? [], { payee, chain }, known),
    reference: () => given(input.reference, (text) => requireMerchantReference('reference', text)),
    requestId: () => given(input.requestId, (text) => requireRequestId('requestId', text)),
    salt: () => given(input.salt, (text) => requireSalt('salt', text)),
    title: () => given(input.title, (text) => requireTitle('title', text)),
    returnUrl: () => given(input.returnUrl, (text) => requireReturnUrl('returnUrl', text)),
    metadata: () => given(input.metadata, (pairs) => requireMetadata('metadata', pairs)),
    expiresAt: () => given(input.expiresAt, parseExpiry),
  })
}

/** The end of a day is meant. Whether it is past is checked later: a line of an import may be older. */
function parseExpiry(text: string): Date {
  return new Date(requireDate('expiresAt', text).lastMs)
}

/** Reads the amount as a number first, whatever its currency is. */
function parseAmount(text: string, readCurrency: () => NonNullable<AmountRule['currency']>): Decimal {
  requireAmount('amount', text, {})
  return requireAmount('amount', text, { currency: readCurrency() })
}

/** The payment currency, which has a chain: that of `network`, or that of the currency's id. */
function parsePaymentCurrency({ paymentCurrency: text, network }: TermsInput, known: KnownCurrencies): Token {
  if (network === undefined || network === '') {
    const named = known.tokens.byId(text)
    if (named !== undefined) return named
    return refuseNoChain(text, known)
  }
  const chain = requireConfigured(known.chains, 'network', network)
  return requireTokenOn(known.tokens, 'paymentCurrency', chain, text)
}

/** Tells why no token was found without a network: a symbol needs one, and an id may name a chain or token that is not configured. */
function refuseNoChain(text: string, { chains, tokens }: KnownCurrencies): Token {
  if (tokens.bySymbol(text).length > 0) throw waybillError('MISSING_FIELD', { field: 'network' })
  const [reading] = readCurrencyId(text, chains)
  if (reading === undefined) {
    throw waybillError('UNKNOWN_CURRENCY', { field: 'paymentCurrency', value: text, suggestion: tokens.suggest(text) })
  }
  if (chains.config(reading.chain) === undefined) throw notConfigured(chains, 'paymentCurrency', reading.chain)
  return requireTokenOn(tokens, 'paymentCurrency', reading.chain, text)
}

function parseInvoiceCurrency(
  text: string,
  token: Token,
  { tokens }: KnownCurrencies,
): { readonly id: string; readonly decimals: number } {
  if (tokens.onChain(token.chain, text) === token) return token
  const fiat = parseFiatCode(text)
  if (fiat !== undefined) return { id: fiat, decimals: FIAT_DECIMALS }
  if (tokens.byId(text) !== undefined || tokens.bySymbol(text).length > 0) {
    throw waybillError('CURRENCY_MISMATCH', { invoiceCurrency: text, paymentCurrency: token.id })
  }
  throw waybillError('UNKNOWN_CURRENCY', { field: 'invoiceCurrency', value: text, suggestion: tokens.suggest(text) })
}

/** Reads the address by itself first, whatever the network is. */
function parseReceiver(field: string, text: string, readNetwork: () => string, { chains }: KnownCurrencies): Address {
  requireReceiver(field, text)
  return requireReceiver(field, text, receiverChain(readNetwork(), chains))
}

/** Who is to be paid, and on which chain. */
interface Receiving {
  readonly payee: () => Address
  readonly chain: () => string
}

/** Refuses the payee's own address: its refund reference would be the payment reference, and refunds would look like payments. */
function parseRefundAddress(text: string, { payee, chain }: Receiving, known: KnownCurrencies): Address {
  const address = parseReceiver('refundAddress', text, chain, known)
  if (address !== payee()) return address
  throw waybillError('REFUND_ADDRESS_IS_PAYEE', { field: 'refundAddress', value: text })
}

/** Reads a set of wallets. @returns them in order of address, so that equal sets are equal terms; undefined for none */
function parseAllowedPayers(
  texts: readonly string[],
  { payee, chain }: Receiving,
  { chains }: KnownCurrencies,
): readonly Address[] | undefined {
  requireFewValues('allowedPayers', texts)
  const known = new Set<Address>()
  readEach(texts, (value, place) => {
    const field = `allowedPayers[${place}]`
    const address = requireAddress(field, value)
    const detail =
      explainReceiver(address, receiverChain(chain(), chains)) ??
      (address === payee() ? 'it is the payee, whose own payments never count' : undefined) ??
      (known.has(address) ? 'it is listed twice' : undefined)
    if (detail !== undefined) throw waybillError('INVALID_ADDRESS', { field, value, detail })
    known.add(address)
  })
  return known.size === 0 ? undefined : [...known].toSorted()
}

/** The request of the terms. An id or salt that they do not have is drawn. */
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
  'allowedPayers',
  'returnUrl',
] as const

/** The names of the terms that differ from those of a stored request. A salt that was not given matches any. */
export function differingTerms(terms: Terms, stored: PaymentRequest): string[] {
  const different: string[] = comparedTerms.filter((name) => comparable(terms, name) !== comparable(stored, name))
  if (terms.salt !== undefined && terms.salt !== stored.salt) different.push('salt')
  return different
}

/** The error for terms that differ from those of the stored request. */
export function explainOtherTerms(terms: Terms, stored: PaymentRequest): WaybillError | undefined {
  const different = differingTerms(terms, stored)
  if (different.length === 0) return undefined
  return waybillError('REQUEST_TERMS_DIFFER', { value: stored.requestId, detail: different.join(', ') })
}

function comparable(terms: Pick<Terms, (typeof comparedTerms)[number]>, name: (typeof comparedTerms)[number]) {
  if (name === 'amount') return formatDecimal(terms.amount)
  return name === 'allowedPayers' ? terms.allowedPayers?.join() : terms[name]
}

/**
 * A hash of the given terms, without title and metadata, and of what is sent beside them. Hashes are stored with idempotency keys, and imported requests have
 * ids that are made of them: the same terms must have the same hash in every version.
 */
export function hashTerms({ amount, ...terms }: Terms, beside: { readonly createdAt?: Date | undefined } = {}): Buffer {
  const given = Object.entries({ ...terms, title: undefined, metadata: undefined }).filter(
    ([, value]) => value !== undefined,
  )
  const entries = [...given, ...Object.entries(beside), ['amount', formatDecimal(amount)] as const]
  const sorted = entries.toSorted(([a], [b]) => (a < b ? -1 : 1))
  return createHash('sha256').update(JSON.stringify(sorted)).digest()
}

/** An update as a caller sends it. An empty text clears its field. */
export interface UpdateInput {
  readonly paymentReference: string
  readonly title?: string | undefined
  readonly expiresAt?: string | undefined
  readonly metadata: Metadata
}

/** Reads an update. @throws one WaybillError for all fields that are wrong, with the reason of the first */
export function parseUpdate({ paymentReference, title, expiresAt, metadata }: UpdateInput): RequestUpdate {
  return readAll({
    paymentReference: () => requirePaymentReference('paymentReference', paymentReference),
    title: () => given(title, (text) => (text === '' ? null : requireTitle('title', text))),
    expiresAt: () => given(expiresAt, (text) => (text === '' ? null : parseExpiry(text))),
    metadata: () => requireMetadataChanges('metadata', metadata),
  })
}

/** What an update makes of a request. @throws WaybillError EXPIRY_PAST for another expiry that is past, TOO_MANY_VALUES */
export function updateRequest(stored: PaymentRequest, update: RequestUpdate, now: Date) {
  const { title = stored.title, expiresAt = stored.expiresAt } = update
  const pairs = Object.entries({ ...stored.metadata, ...update.metadata }).filter(([, value]) => value !== '')
  const metadata = requireMetadata('metadata', Object.fromEntries(pairs))
  const updated: PaymentRequest = { ...stored, title: title ?? undefined, expiresAt: expiresAt ?? undefined, metadata }
  const isMoved = updated.expiresAt?.getTime() !== stored.expiresAt?.getTime()
  if (isMoved && updated.expiresAt !== undefined && updated.expiresAt <= now) {
    throw waybillError('EXPIRY_PAST', { field: 'expiresAt', value: updated.expiresAt.toISOString() })
  }
  const keys = Object.keys(update.metadata).filter((key) => metadata?.[key] !== stored.metadata?.[key])
  const fields = [...(updated.title === stored.title ? [] : ['title']), ...(isMoved ? ['expiresAt'] : [])]
  return { updated, changed: [...fields, ...keys.map((key) => `metadata.${key}`)] }
}
