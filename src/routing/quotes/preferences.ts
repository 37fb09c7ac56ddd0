import type { ChainDirectory } from '../../chains/chain-directory.ts'
import { type TokenDirectory } from '../../chains/token-directory.ts'
import { splitCurrencyId, type Token } from '../../domain/currency.ts'
import { compareDecimals, type Decimal, formatDecimal, parseDecimal } from '../../domain/decimal.ts'
import { listNames, suggestName } from '../../domain/nearest.ts'
import type { RouteSort, RoutesQuestion, RouteWarning } from '../../domain/route.ts'
import { readAll, readEach } from '../../errors/gather-errors.ts'
import { type Explanation, explain, waybillError } from '../../errors/waybill-error.ts'
import { type UnrankedRoute, warn } from './assemble-route.ts'
import { priceWarningOf } from './rank.ts'

/** What a caller wants of routes, beside being able to pay. */
export interface Preferences {
  readonly sort?: RouteSort | undefined
  readonly maxPriceImpact?: Decimal | undefined
  readonly maxFeeRate?: Decimal | undefined
  /** Names of the chains to pay from. */
  readonly chains?: ReadonlySet<string> | undefined
  /** Ids of the tokens to pay with. */
  readonly tokens?: ReadonlySet<string> | undefined
  /** Warnings of preferences that no configured chain or token meets. */
  readonly unmet: readonly RouteWarning[]
}

export interface Directories {
  readonly chains: ChainDirectory
  readonly tokens: TokenDirectory
}

/**
 * Parses a caller's preferences.
 *
 * @throws WaybillError INVALID_FRACTION, and UNKNOWN_NETWORK or UNKNOWN_CURRENCY for an unknown name
 */
export function parsePreferences(question: RoutesQuestion, directories: Directories): Preferences {
  const { chains, tokens, ...maxima } = readAll({
    chains: () => readNames('chains', question.chains, directories, chainsOf),
    tokens: () => readNames('tokens', question.tokens, directories, tokensOf),
    maxPriceImpact: () => readFraction('maxPriceImpact', question.maxPriceImpact),
    maxFeeRate: () => readFraction('maxFeeRate', question.maxFeeRate),
  })
  const named = { chains: chains?.names, tokens: tokens?.names }
  const unmet = [...(chains?.unmet ?? []), ...(tokens?.unmet ?? [])]
  return {
    sort: question.sort,
    ...maxima,
    ...named,
    unmet: unmet.length > 0 ? unmet : unmetTogether(named, directories),
  }
}

/** Whether the caller wants to pay with a token. */
export function isWanted(
  source: Pick<Token, 'id' | 'chain'>,
  { chains, tokens }: Pick<Preferences, 'chains' | 'tokens'>,
): boolean {
  return (chains?.has(source.chain) ?? true) && (tokens?.has(source.id) ?? true)
}

/** Which of the caller's maxima a route exceeds; undefined when none. */
export function explainUnwanted(
  { feeRate, priceImpact, route }: Pick<UnrankedRoute, 'feeRate' | 'priceImpact' | 'route'>,
  { maxFeeRate, maxPriceImpact }: Pick<Preferences, 'maxFeeRate' | 'maxPriceImpact'>,
): Explanation | undefined {
  if (maxFeeRate !== undefined && compareDecimals(feeRate, maxFeeRate) > 0) {
    return explain('FEE_ABOVE_MAXIMUM', { feeRate: formatDecimal(feeRate), maxFeeRate: formatDecimal(maxFeeRate) })
  }
  if (maxPriceImpact === undefined) return undefined
  const doubt = priceWarningOf(route)
  const terms = { priceImpact: formatDecimal(priceImpact), maxPriceImpact: formatDecimal(maxPriceImpact) }
  if (compareDecimals(priceImpact, maxPriceImpact) > 0) {
    const raised =
      doubt === undefined ? `raise maxPriceImpact to ${terms.priceImpact} or more` : 'leave maxPriceImpact out'
    return explain('PRICE_IMPACT_ABOVE_MAXIMUM', { ...terms, suggestion: raised })
  }
  if (doubt !== undefined) return explain('PRICE_IMPACT_UNCERTAIN', { ...terms, why: doubt.message })
  return undefined
}

function readFraction(field: 'maxFeeRate' | 'maxPriceImpact', text: string | undefined): Decimal | undefined {
  if (text === undefined) return undefined
  const fraction = parseDecimal(text)
  if (fraction !== undefined && fraction.units >= 0n) return fraction
  throw waybillError('INVALID_FRACTION', { field, value: text })
}

/** What one name stands for. */
type Meaning =
  | { readonly names: readonly string[] }
  /** The name is known, but no configured chain or token has it. */
  | { readonly unmet: RouteWarning }

function readNames(
  preference: 'chains' | 'tokens',
  texts: readonly string[] | undefined,
  directories: Directories,
  read: (directories: Directories, field: string, text: string) => Meaning,
) {
  if (texts === undefined || texts.length === 0) return undefined
  const meanings = readEach(texts, (text, i) => read(directories, `${preference}[${i}]`, text))
  return {
    names: new Set(meanings.flatMap((meaning) => ('names' in meaning ? meaning.names : []))),
    unmet: meanings.flatMap((meaning) => ('unmet' in meaning ? [meaning.unmet] : [])),
  }
}

/** @throws WaybillError UNKNOWN_NETWORK */
function chainsOf({ chains }: Directories, field: string, text: string): Meaning {
  const resolved = chains.resolve(text)
  if (resolved.kind === 'unknown') {
    throw waybillError('UNKNOWN_NETWORK', { field, value: text, suggestion: resolved.suggest() })
  }
  if (resolved.kind === 'chain' && chains.config(resolved.name) !== undefined) return { names: [resolved.name] }
  const names = chains.configured.map(({ name }) => name)
  return { unmet: warnUnmet(`${field}: "${text}" is not served here`, suggestion('chains', names)) }
}

/** @throws WaybillError UNKNOWN_CURRENCY */
function tokensOf({ chains, tokens }: Directories, field: string, text: string): Meaning {
  const found = tokens.bySymbol(text)
  if (found.length > 0) return { names: found.map(({ id }) => id) }
  const token = tokens.byId(text)
  if (token !== undefined) return { names: [token.id] }
  const known = splitCurrencyId(text).find(({ symbol, network }) => {
    return tokens.bySymbol(symbol).length > 0 && chains.resolve(network).kind !== 'unknown'
  })
  if (known === undefined) {
    const names = new Set(tokens.all.flatMap(({ symbol, id }) => [symbol, id]))
    throw waybillError('UNKNOWN_CURRENCY', { field, value: text, suggestion: suggestName(text, names) })
  }
  const ids = tokens.bySymbol(known.symbol).map(({ id }) => id)
  return { unmet: warnUnmet(`${field}: "${text}" is not served here`, suggestion('tokens', ids)) }
}

/** Each name by itself is served, but no token of the one list is on a chain of the other. */
function unmetTogether(
  named: Pick<Preferences, 'chains' | 'tokens'>,
  { tokens }: Directories,
): readonly RouteWarning[] {
  if (named.chains === undefined || named.tokens === undefined) return []
  if (tokens.all.some((token) => isWanted(token, named))) return []
  const ids = tokens.all.filter(({ chain }) => named.chains?.has(chain)).map(({ id }) => id)
  return [warnUnmet('none of the tokens is on any of the chains', suggestion('tokens', ids))]
}

function warnUnmet(detail: string, remedy: string): RouteWarning {
  return warn('FILTER_MATCHES_NOTHING', { detail, suggestion: remedy })
}

function suggestion(preference: 'chains' | 'tokens', names: readonly string[]): string {
  return names.length === 0 ? `leave ${preference} out` : listNames(names)
}
