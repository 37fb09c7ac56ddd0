import type { Address } from './address.ts'

/** Currencies: tokens and native coins of chains, named by id (`USDC-BASE`), and fiat currencies, named by ISO 4217 code. */

/** The decimals of all fiat amounts, as in the conversion contracts. */
export const FIAT_DECIMALS = 8

/** A token or native coin of a configured chain. */
export interface Token {
  /** `USDC-BASE`. */
  readonly id: string
  readonly symbol: string
  /** Canonical chain name. */
  readonly chain: string
  /** Absent for a native coin. */
  readonly address?: Address
  readonly decimals: number
  readonly bridged: boolean
  readonly approveReset: boolean
  readonly usdFeed?: Address | undefined
  readonly heartbeatSeconds?: number
  readonly pegUsd?: string
  /** An https address, or a data URI. */
  readonly logo?: string
}

/** A token with a contract. */
export type Erc20 = Token & { readonly address: Address }

/** Whether a token has a contract, and is not a native coin. */
export function isErc20(token: Token): token is Erc20 {
  return token.address !== undefined
}

/** The id of a symbol on a chain. */
export function currencyId(symbol: string, chain: string): string {
  return `${symbol}-${chain}`
}

/** The symbol of a currency: `USDC-BASE` → `USDC`, `EUR` → `EUR`. */
export function symbolOfCurrency(id: string): string {
  const at = id.lastIndexOf('-')
  return at < 0 ? id : id.slice(0, at)
}

/** The network of a currency's id: `USDC-BASE` → `BASE`; empty for a fiat currency. */
export function networkOfCurrency(id: string): string {
  return id.slice(symbolOfCurrency(id).length + 1)
}

/** A longer text is not a currency id. */
const MAX_ID_LENGTH = 128

/** A symbol, and what may be the name of a network. */
interface SplitId {
  readonly symbol: string
  readonly network: string
}

/**
 * All ways to split a text at a `-` into a symbol and a possible network, the longest network first, then those in which the network stands
 * twice, as in Request Network's `USDC-base-base`; none for a text that is too long.
 */
export function splitCurrencyId(text: string): readonly SplitId[] {
  if (text.length > MAX_ID_LENGTH) return []
  const once = [...text.matchAll(/-/g)]
    .map(({ index }) => ({ symbol: text.slice(0, index), network: text.slice(index + 1) }))
    .filter(({ symbol, network }) => symbol !== '' && network !== '' && network === network.trim())
  return [...once, ...once.flatMap(dropRepeatedNetwork)]
}

function dropRepeatedNetwork({ symbol, network }: SplitId): readonly SplitId[] {
  const end = symbol.length - network.length - 1
  return end > 0 && symbol.slice(end) === `-${network}` ? [{ symbol: symbol.slice(0, end), network }] : []
}

/** All codes of ISO 4217 that this runtime knows. */
export const fiatCodes: ReadonlySet<string> = new Set(Intl.supportedValuesOf('currency'))

/** The ISO 4217 code that a text is in any case, or undefined. */
export function parseFiatCode(text: string): string | undefined {
  const code = text.toUpperCase()
  return fiatCodes.has(code) ? code : undefined
}
