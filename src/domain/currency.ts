import type { Address } from './address.ts'
import { type ChainDirectory, createChainDirectory } from './chain.ts'
import type { ChainConfig } from './chains-file.ts'
import { namesOf, suggestName } from './nearest.ts'

/**
 * Currencies: tokens and native coins of chains, known by id (`USDC-BASE`), and fiat currencies, known by ISO 4217 code.
 */

/** Decimals in which fiat amounts are counted by the conversion contracts, and so here. */
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
  readonly usdFeed?: Address
  readonly heartbeatSeconds?: number
  readonly pegUsd?: string
}

/** The id of a symbol on a chain. */
export function currencyId(symbol: string, chain: string): string {
  return `${symbol}-${chain}`
}

/** The symbol of a currency id, or of an ISO code itself: `USDC-BASE` → `USDC`, `EUR` → `EUR`. */
export function symbolOfCurrency(id: string): string {
  const at = id.lastIndexOf('-')
  return at < 0 ? id : id.slice(0, at)
}

/** A currency id as it is stored: its network goes by the canonical name. */
export interface CurrencyIdReading {
  readonly id: string
  readonly symbol: string
  /** Canonical chain name. */
  readonly chain: string
}

/** The longest text that is read as a currency id. */
const LONGEST_ID = 128

/**
 * Reads a currency id whose network may be written in any case, as an alias, a chain id or CAIP-2: `USDC-matic`, `USDC-137` and
 * `USDC-eip155:137` are all `USDC-POLYGON`. Symbols and aliases may have a `-` of their own, so there may be several readings.
 *
 * @param alsoKnown - further canonical names of chains, for instance those that an account imported
 * @returns the reading with the longest network first; none where no end of the text names a chain, or only a chain that is served here
 *   under another id. The symbol stands as it was written, and whether the chain has such a token is not looked up
 */
export function readCurrencyId(
  text: string,
  chains: Pick<ChainDirectory, 'resolve'>,
  alsoKnown?: ReadonlySet<string>,
): readonly CurrencyIdReading[] {
  return splitCurrencyId(text).flatMap(({ symbol, network }) => {
    const resolved = chains.resolve(network, alsoKnown)
    return resolved.kind === 'chain' ? [{ id: currencyId(symbol, resolved.name), symbol, chain: resolved.name }] : []
  })
}

/** The ways to cut a text into a symbol and what may be a network, the longest network first; none for a text that is too long for an id. */
export function splitCurrencyId(text: string): readonly { readonly symbol: string; readonly network: string }[] {
  if (text.length > LONGEST_ID) return []
  return [...text.matchAll(/-/g)]
    .map(({ index }) => ({ symbol: text.slice(0, index), network: text.slice(index + 1) }))
    .filter(({ symbol, network }) => symbol !== '' && network !== '' && network === network.trim())
}

const fiatCodes: ReadonlySet<string> = new Set(Intl.supportedValuesOf('currency'))

/** The ISO 4217 code that a text is in any case, or undefined. */
export function parseFiatCode(text: string): string | undefined {
  const code = text.toUpperCase()
  return fiatCodes.has(code) ? code : undefined
}

/** Finds tokens by id, symbol and address. */
export interface TokenDirectory {
  readonly all: readonly Token[]
  /** By id in any case; its network may be an alias, as {@link readCurrencyId} takes it. */
  byId(id: string): Token | undefined
  /** All tokens of a symbol in any case. `USDC` does not find `USDC.e`. */
  bySymbol(symbol: string): readonly Token[]
  /** By contract on a chain. */
  byAddress(chain: string, address: Address): Token | undefined
  /** The native coin of a chain. */
  native(chain: string): Token | undefined
  /** The tokens of a chain, native coin first. */
  ofChain(chain: string): readonly Token[]
  /** The token of a chain by symbol or id in any case. */
  onChain(chain: string, symbolOrId: string): Token | undefined
  /** What to say of a currency that nobody knows. */
  suggest(text: string, alsoKnown?: Iterable<string>): string
}

/** Makes the directory of all tokens of the configured chains. */
export function createTokenDirectory(chains: readonly ChainConfig[]): TokenDirectory {
  const all = chains.flatMap(tokensOf)
  const ids = new Map(all.map((token) => [token.id.toUpperCase(), token]))
  const symbols = Map.groupBy(all, (token) => token.symbol.toUpperCase())
  const chainTokens = Map.groupBy(all, (token) => token.chain)
  const addresses = new Map(
    all.flatMap((token) => (token.address === undefined ? [] : [[`${token.chain} ${token.address}`, token] as const])),
  )
  const directory = createChainDirectory(chains)
  const byId = (id: string) =>
    ids.get(id.toUpperCase()) ??
    readCurrencyId(id, directory)
      .map((reading) => ids.get(reading.id.toUpperCase()))
      .find((token) => token !== undefined)
  return {
    all,
    byId,
    bySymbol: (symbol) => symbols.get(symbol.toUpperCase()) ?? [],
    byAddress: (chain, address) => addresses.get(`${chain} ${address}`),
    native: (chain) => chainTokens.get(chain)?.find((token) => token.address === undefined),
    ofChain: (chain) => chainTokens.get(chain) ?? [],
    onChain: (chain, symbolOrId) => {
      const token = byId(symbolOrId) ?? byId(currencyId(symbolOrId, chain))
      return token?.chain === chain ? token : undefined
    },
    suggest: (text, alsoKnown = []) =>
      suggestName(
        text,
        namesOf(
          all.flatMap((token) => [token.symbol, token.id]),
          alsoKnown,
          fiatCodes,
        ),
      ),
  }
}

function tokensOf(config: ChainConfig): Token[] {
  const native: Token = {
    ...config.native,
    id: currencyId(config.native.symbol, config.name),
    chain: config.name,
    bridged: false,
    approveReset: false,
  }
  const tokens = config.tokens.map(
    (token): Token => ({
      ...token,
      id: currencyId(token.symbol, config.name),
      chain: config.name,
      bridged: token.bridged ?? false,
      approveReset: token.approveReset ?? false,
    }),
  )
  return [native, ...tokens]
}
