import type { Address } from '../domain/address.ts'
import { currencyId, FIAT_DECIMALS, fiatCodes, parseFiatCode, splitCurrencyId, type Token } from '../domain/currency.ts'
import { namesOf, suggestName } from '../domain/nearest.ts'
import { type ChainDirectory, createChainDirectory } from './chain-directory.ts'
import type { ChainConfig } from './chains-file.ts'

/**
 * Reads a currency id whose network may be in any case, an alias, a chain id or CAIP-2: `USDC-matic`, `USDC-137` and `USDC-eip155:137` are
 * all `USDC-POLYGON`. Symbols and aliases may contain `-`, so there may be several readings.
 *
 * @param alsoKnown - further canonical names of chains, for instance those that an account imported
 * @returns ids as they are stored, each with symbol and canonical chain name, the longest network first; none where the text does not end in the name of a chain. The symbol is as it was
 *   written; it is not checked that the chain has such a token
 */
export function readCurrencyId(text: string, chains: Pick<ChainDirectory, 'resolve'>, alsoKnown?: ReadonlySet<string>) {
  return splitCurrencyId(text).flatMap(({ symbol, network }) => {
    const resolved = chains.resolve(network, alsoKnown)
    return resolved.kind === 'chain' ? [{ id: currencyId(symbol, resolved.name), symbol, chain: resolved.name }] : []
  })
}

/** Finds tokens by id, symbol and address. */
export type TokenDirectory = ReturnType<typeof createTokenDirectory>

/**
 * The decimals of a currency, for the check against the largest amount. Where they differ from chain to chain, or the id is unknown, the fewest of its
 * symbol: these allow the largest amounts. 0 where the symbol is unknown too.
 *
 * @param id - of a token; undefined for all tokens of the symbol
 */
export function fewestDecimals(tokens: Pick<TokenDirectory, 'bySymbol'>, symbol: string, id?: string): number {
  const known = tokens.bySymbol(symbol)
  const meant = known.filter((token) => token.id === id)
  const some = meant.length > 0 ? meant : known
  if (some.length > 0) return Math.min(...some.map(({ decimals }) => decimals))
  return parseFiatCode(symbol) === undefined ? 0 : FIAT_DECIMALS
}

/** Creates the directory of all tokens of the configured chains. */
export function createTokenDirectory(chains: readonly ChainConfig[]) {
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
    all: all as readonly Token[],
    /** By id in any case. Its network may be an alias, see {@link readCurrencyId}. */
    byId,
    /** All tokens of a symbol in any case. `USDC` does not find `USDC.e`. */
    bySymbol: (symbol: string): readonly Token[] => symbols.get(symbol.toUpperCase()) ?? [],
    /** By contract on a chain. */
    byAddress: (chain: string, address: Address) => addresses.get(`${chain} ${address}`),
    /** The native coin of a chain. */
    native: (chain: string) => chainTokens.get(chain)?.find((token) => token.address === undefined),
    /** The tokens of a chain, native coin first. */
    ofChain: (chain: string): readonly Token[] => chainTokens.get(chain) ?? [],
    /** The token of a chain by symbol or id in any case. */
    onChain: (chain: string, symbolOrId: string) => {
      const token = byId(symbolOrId) ?? byId(currencyId(symbolOrId, chain))
      return token?.chain === chain ? token : undefined
    },
    /** A suggestion for an unknown currency, for error messages. */
    suggest: (text: string, alsoKnown: Iterable<string> = []) =>
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

function tokensOf({ name: chain, native, tokens }: ChainConfig): Token[] {
  const defaults = { bridged: false, approveReset: false }
  return [native, ...tokens].map((token) => ({ ...defaults, ...token, id: currencyId(token.symbol, chain), chain }))
}
