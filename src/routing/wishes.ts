import type { ChainDirectory } from '../domain/chain.ts'
import type { TokenDirectory } from '../domain/currency.ts'
import { compareDecimals, type Decimal, formatDecimal, parseDecimal } from '../domain/decimal.ts'
import { suggestName } from '../domain/nearest.ts'
import type { RouteSort, RoutesQuestion, UnavailableRoute } from '../domain/route.ts'
import { type Explanation, explain, waybillError } from '../errors.ts'
import type { UnrankedRoute } from './assemble-route.ts'
import type { Candidate } from './candidates.ts'

/** What a caller wants of the routes beside that they pay. */
export interface Wishes {
  readonly sort?: RouteSort
  readonly maxPriceImpact?: Decimal
  readonly maxFeeRate?: Decimal
  /** Names of the chains to pay from. */
  readonly chains?: ReadonlySet<string>
  /** Ids of the tokens to pay with. */
  readonly tokens?: ReadonlySet<string>
}

interface Directories {
  readonly chains: ChainDirectory
  readonly tokens: TokenDirectory
}

/** @throws WaybillError INVALID_FRACTION, UNKNOWN_NETWORK or UNKNOWN_CURRENCY */
export function parseWishes(question: RoutesQuestion, directories: Directories): Wishes {
  const maxPriceImpact = readFraction('maxPriceImpact', question.maxPriceImpact)
  const maxFeeRate = readFraction('maxFeeRate', question.maxFeeRate)
  const chains = readList(question.chains, (text, field) => chainsOf(directories, field, text), 'chains')
  const tokens = readList(question.tokens, (text, field) => tokensOf(directories, field, text), 'tokens')
  return {
    ...(question.sort === undefined ? {} : { sort: question.sort }),
    ...(maxPriceImpact === undefined ? {} : { maxPriceImpact }),
    ...(maxFeeRate === undefined ? {} : { maxFeeRate }),
    ...(chains === undefined ? {} : { chains }),
    ...(tokens === undefined ? {} : { tokens }),
  }
}

/** Whether a candidate is one that the caller would pay with. */
export function isWanted({ source }: Candidate, { chains, tokens }: Wishes): boolean {
  return (chains?.has(source.chain) ?? true) && (tokens?.has(source.id) ?? true)
}

/** What of a route is more than the caller takes; undefined when nothing is. */
export function explainUnwanted(
  { feeRate, priceImpact }: Pick<UnrankedRoute, 'feeRate' | 'priceImpact'>,
  { maxFeeRate, maxPriceImpact }: Wishes,
): Explanation | undefined {
  if (maxFeeRate !== undefined && compareDecimals(feeRate, maxFeeRate) > 0) {
    return explain('FEE_ABOVE_MAXIMUM', { feeRate: formatDecimal(feeRate), maxFeeRate: formatDecimal(maxFeeRate) })
  }
  if (maxPriceImpact !== undefined && compareDecimals(priceImpact, maxPriceImpact) > 0) {
    return explain('PRICE_IMPACT_ABOVE_MAXIMUM', {
      priceImpact: formatDecimal(priceImpact),
      maxPriceImpact: formatDecimal(maxPriceImpact),
    })
  }
  return undefined
}

/** A route as an entry that says why it is left out. */
export function leftOut({ route }: UnrankedRoute, explanation: Explanation): UnavailableRoute {
  const { chain, token, provider } = route
  return { chain, token, provider, ...explanation }
}

function readFraction(field: 'maxFeeRate' | 'maxPriceImpact', text: string | undefined): Decimal | undefined {
  if (text === undefined) return undefined
  const fraction = parseDecimal(text)
  if (fraction !== undefined && fraction.units >= 0n) return fraction
  throw waybillError('INVALID_FRACTION', { field, value: text })
}

function readList(
  texts: readonly string[] | undefined,
  read: (text: string, field: string) => readonly string[],
  field: string,
): ReadonlySet<string> | undefined {
  if (texts === undefined || texts.length === 0) return undefined
  return new Set(texts.flatMap((text, i) => read(text, `${field}[${i}]`)))
}

function chainsOf({ chains }: Directories, field: string, text: string): readonly string[] {
  const resolved = chains.resolve(text)
  if (resolved.kind === 'unknown') {
    throw waybillError('UNKNOWN_NETWORK', { field, value: text, suggestion: resolved.suggest() })
  }
  // One that is served here under another id is not the one that was meant.
  return resolved.kind === 'chain' ? [resolved.name] : []
}

function tokensOf({ tokens }: Directories, field: string, text: string): readonly string[] {
  const found = tokens.bySymbol(text)
  if (found.length > 0) return found.map(({ id }) => id)
  const token = tokens.byId(text)
  if (token !== undefined) return [token.id]
  const names = new Set(tokens.all.flatMap(({ symbol, id }) => [symbol, id]))
  throw waybillError('UNKNOWN_CURRENCY', { field, value: text, suggestion: suggestName(text, names) })
}
