import type { Token } from '../../domain/currency.ts'
import type { PaymentQuestion } from '../../domain/route.ts'
import { waybillError } from '../../errors/waybill-error.ts'
import { DIRECT_ROUTE_ID } from './route-id.ts'
import type { Directories } from './wishes.ts'

/** The route that a caller wants to take. */
export type RouteChoice =
  | { readonly kind: 'ID'; readonly id: string }
  /** The best route with that token or coin. */
  | { readonly kind: 'TOKEN'; readonly token: Token }

/**
 * Parses the caller's choice: `route`, or `chain` and `token` together, or none of them for the direct route.
 *
 * @throws WaybillError INCOMPLETE_ROUTE, MISSING_FIELD for an empty value, UNKNOWN_NETWORK,
 *   NETWORK_NOT_CONFIGURED or CURRENCY_NOT_ON_NETWORK
 */
export function readChoice(question: PaymentQuestion, directories: Directories): RouteChoice {
  const { route, chain, token } = question
  for (const field of ['route', 'chain', 'token'] as const) {
    if (question[field] === '') throw waybillError('MISSING_FIELD', { field })
  }
  for (const field of ['chain', 'token'] as const) {
    if (route === undefined || question[field] === undefined) continue
    throw waybillError('INCOMPLETE_ROUTE', { field, detail: 'beside route' })
  }
  if (chain === undefined && token === undefined) return { kind: 'ID', id: route ?? DIRECT_ROUTE_ID }
  if (token === undefined) throw waybillError('INCOMPLETE_ROUTE', { field: 'chain', detail: 'without token' })
  if (chain === undefined) throw waybillError('INCOMPLETE_ROUTE', { field: 'token', detail: 'without chain' })
  return { kind: 'TOKEN', token: tokenOf(chain, token, directories) }
}

/** The choice as messages name it. */
export function nameOf(choice: RouteChoice): string {
  return choice.kind === 'ID' ? choice.id : `with ${choice.token.symbol} on ${choice.token.chain}`
}

function tokenOf(chainText: string, tokenText: string, { chains, tokens }: Directories): Token {
  const resolved = chains.resolve(chainText)
  if (resolved.kind === 'unknown') {
    throw waybillError('UNKNOWN_NETWORK', { field: 'chain', value: chainText, suggestion: resolved.suggest() })
  }
  if (resolved.kind === 'elsewhere' || chains.config(resolved.name) === undefined) {
    const known = chains.configured.map(({ name }) => name).join(', ')
    throw waybillError('NETWORK_NOT_CONFIGURED', { field: 'chain', value: chainText, known })
  }
  const token = tokens.onChain(resolved.name, tokenText)
  if (token !== undefined) return token
  const known = tokens
    .ofChain(resolved.name)
    .map(({ symbol }) => symbol)
    .join(', ')
  throw waybillError('CURRENCY_NOT_ON_NETWORK', { field: 'token', value: tokenText, network: resolved.name, known })
}
