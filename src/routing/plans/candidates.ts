import { type TokenDirectory } from '../../chains/token-directory.ts'
import { parseFiatCode, type Token } from '../../domain/currency.ts'
import type { PaymentRequest } from '../../domain/payment-request.ts'

/**
 * How a token could pay a request.
 * - `DIRECT`: it is the payment currency
 * - `CONVERSION`: it is the payment currency of a fiat request
 * - `SWAP`: another token of the request's chain
 * - `CROSSCHAIN`: a token of another chain
 */
export type CandidateKind = 'DIRECT' | 'CONVERSION' | 'SWAP' | 'CROSSCHAIN'

/** A token with which a wallet might pay a request. */
export interface Candidate {
  readonly kind: CandidateKind
  readonly source: Token
  /** The request's payment currency. */
  readonly destination: Token
}

/** Whether a request's amount is in a fiat currency. Then only a conversion counts as its payment. */
export function isFiatRequest(request: PaymentRequest): boolean {
  return parseFiatCode(request.invoiceCurrency) !== undefined
}

/**
 * Every token and native coin of every configured chain: the request's payment currency first, then its chain, then the others
 * in the order of the configuration.
 */
export function findCandidates(request: PaymentRequest, destination: Token, tokens: TokenDirectory): Candidate[] {
  const own = tokens.ofChain(destination.chain).filter((token) => token.id !== destination.id)
  const elsewhere = tokens.all.filter((token) => token.chain !== destination.chain)
  return [destination, ...own, ...elsewhere].map((source) => ({
    kind: kindOf(request, source, destination),
    source,
    destination,
  }))
}

function kindOf(request: PaymentRequest, source: Token, destination: Token): CandidateKind {
  if (source.chain !== destination.chain) return 'CROSSCHAIN'
  if (source.id !== destination.id) return 'SWAP'
  return isFiatRequest(request) ? 'CONVERSION' : 'DIRECT'
}
