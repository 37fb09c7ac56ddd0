import { parseFiatCode, splitCurrencyId, symbolOfCurrency, type Token } from '../domain/currency.ts'
import { namesOf, suggestName } from '../domain/nearest.ts'
import { waybillError } from '../errors/waybill-error.ts'
import type { ChainDirectory } from './chain-directory.ts'
import { readCurrencyId, type TokenDirectory } from './token-directory.ts'

/** The names of networks and currencies that the payments or requests of an account have, beyond those of the configuration and built-in tables. */
export interface AccountNames {
  networks(): Promise<ReadonlySet<string>>
  /** Symbols of payment currencies. */
  symbols(): Promise<ReadonlySet<string>>
  /** Ids of payment currencies. */
  currencyIds(): Promise<ReadonlySet<string>>
  /** Currency ids and codes of invoices. */
  invoiceCurrencies(): Promise<ReadonlySet<string>>
}

/** A currency that payments are made in, or were invoiced in: one id, or a symbol on any chain. */
export interface CurrencyMatch {
  readonly of: 'payment' | 'invoice'
  readonly symbol: string
  /** Currency id or ISO 4217 code; undefined where every token of the symbol is meant. */
  readonly id?: string | undefined
}

/** Where names are looked up: configuration and built-in tables first, what the account has only where those do not know the name. */
export interface NameSources {
  readonly chains: ChainDirectory
  readonly tokens: TokenDirectory
  readonly account: AccountNames
}

/**
 * The canonical name of a network, from any of its names.
 *
 * @returns one name; none for a chain that is known but whose canonical name the configuration gives to another chain id
 * @throws UNKNOWN_NETWORK with the nearest known name
 */
export async function resolveNetwork(sources: NameSources, field: string, text: string): Promise<readonly string[]> {
  const known = sources.chains.resolve(text)
  if (known.kind !== 'unknown') return known.kind === 'chain' ? [known.name] : []
  const ofAccount = await sources.account.networks()
  const asWritten = matchName(text, ofAccount)
  if (asWritten.length > 0) return asWritten
  const again = sources.chains.resolve(text, ofAccount)
  if (again.kind === 'chain') return [again.name]
  throw waybillError('UNKNOWN_NETWORK', {
    field,
    value: text,
    suggestion: again.kind === 'unknown' ? again.suggest() : known.suggest(),
  })
}

/** The name of a configured chain, from any of its names. @throws WaybillError UNKNOWN_NETWORK, NETWORK_NOT_CONFIGURED */
export function requireConfigured(chains: ChainDirectory, field: string, text: string): string {
  const resolved = chains.resolve(text)
  if (resolved.kind === 'unknown') {
    throw waybillError('UNKNOWN_NETWORK', { field, value: text, suggestion: resolved.suggest() })
  }
  if (resolved.kind === 'chain' && chains.config(resolved.name) !== undefined) return resolved.name
  throw notConfigured(chains, field, text)
}

export function notConfigured({ configured }: ChainDirectory, field: string, value: string) {
  const known = configured.map(({ name }) => name).join(', ')
  return waybillError('NETWORK_NOT_CONFIGURED', { field, value, known })
}

/** The token of a configured chain, by symbol or id. @throws WaybillError CURRENCY_NOT_ON_NETWORK */
export function requireTokenOn(tokens: TokenDirectory, field: string, network: string, value: string): Token {
  const token = tokens.onChain(network, value)
  if (token !== undefined) return token
  const known = tokens.ofChain(network).map(({ id }) => id)
  throw waybillError('CURRENCY_NOT_ON_NETWORK', { field, value, network, known: known.join(', ') })
}

/**
 * What a value of `currency` means: a payment currency by symbol or id, else an invoice currency by ISO 4217 code, else a currency that
 * this account's payments have.
 *
 * @throws UNKNOWN_CURRENCY with the nearest known name
 */
export async function resolveCurrency(
  sources: NameSources,
  field: string,
  text: string,
): Promise<readonly CurrencyMatch[]> {
  const known = configuredPayment(sources, text) ?? fiatInvoice(text)
  if (known !== undefined) return known
  const imported = await importedPayment(sources, text)
  const matches = imported ?? (await importedInvoice(sources, text))
  if (matches !== undefined) return matches
  const names = namesOf(await sources.account.symbols(), await sources.account.invoiceCurrencies())
  throw waybillError('UNKNOWN_CURRENCY', { field, value: text, suggestion: sources.tokens.suggest(text, names) })
}

/** What a value of `paymentCurrency` means: a token or coin by symbol or id. */
export async function resolvePaymentCurrency(
  sources: NameSources,
  field: string,
  text: string,
): Promise<readonly CurrencyMatch[]> {
  const matches = configuredPayment(sources, text) ?? (await importedPayment(sources, text))
  if (matches !== undefined) return matches
  const configured = sources.tokens.all.flatMap((token) => [token.symbol, token.id])
  const names = namesOf(configured, await sources.account.symbols())
  throw waybillError('UNKNOWN_CURRENCY', { field, value: text, suggestion: suggestName(text, names) })
}

/** What a value of `invoiceCurrency` means: an ISO 4217 code, else a token by symbol or id. */
export async function resolveInvoiceCurrency(
  sources: NameSources,
  field: string,
  text: string,
): Promise<readonly CurrencyMatch[]> {
  const token = configuredPayment(sources, text)?.map((match): CurrencyMatch => ({ ...match, of: 'invoice' }))
  const matches = fiatInvoice(text) ?? token ?? (await importedInvoice(sources, text))
  if (matches !== undefined) return matches
  const names = await sources.account.invoiceCurrencies()
  throw waybillError('UNKNOWN_CURRENCY', { field, value: text, suggestion: sources.tokens.suggest(text, names) })
}

function configuredPayment({ tokens }: NameSources, text: string): CurrencyMatch[] | undefined {
  const symbols = matchName(text, new Set(tokens.bySymbol(text).map((token) => token.symbol)))
  if (symbols.length > 0) return symbols.map((symbol) => ({ of: 'payment', symbol }))
  const token = tokens.byId(text)
  return token === undefined ? undefined : [{ of: 'payment', symbol: token.symbol, id: token.id }]
}

function fiatInvoice(text: string): CurrencyMatch[] | undefined {
  const code = parseFiatCode(text)
  return code === undefined ? undefined : [{ of: 'invoice', symbol: code, id: code }]
}

async function importedPayment(sources: NameSources, text: string): Promise<CurrencyMatch[] | undefined> {
  const { account } = sources
  const known = await account.symbols()
  const symbols = matchName(text, known)
  if (symbols.length > 0) return symbols.map((symbol) => ({ of: 'payment', symbol }))
  if (!text.includes('-') || !hasSymbolOf(text, known)) return undefined
  const ids = await matchId(sources, text, await account.currencyIds())
  return ids.length === 0 ? undefined : ids.map((id) => ({ of: 'payment', symbol: symbolOfCurrency(id), id }))
}

/** Whether the text before one of its `-` is a known symbol. Only then are the ids read, of which an account may have very many. */
function hasSymbolOf(text: string, symbols: ReadonlySet<string>): boolean {
  return splitCurrencyId(text).some(({ symbol }) => equalButForCase(symbol, symbols).length > 0)
}

/** The ids equal to the text, else those equal to it once its network's alias is resolved: `USDC-matic` is `USDC-POLYGON`. */
async function matchId(
  { chains, account }: NameSources,
  text: string,
  ids: ReadonlySet<string>,
): Promise<readonly string[]> {
  const asWritten = matchName(text, ids)
  if (asWritten.length > 0 || !text.includes('-')) return asWritten
  const readings = readCurrencyId(text, chains, await account.networks())
  return readings.map((reading) => matchName(reading.id, ids)).find((matched) => matched.length > 0) ?? []
}

async function importedInvoice(sources: NameSources, text: string): Promise<CurrencyMatch[] | undefined> {
  const known = await sources.account.invoiceCurrencies()
  const ids = await matchId(sources, text, known)
  if (ids.length > 0) return ids.map((id) => ({ of: 'invoice', symbol: symbolOfCurrency(id), id }))
  const symbols = matchName(text, symbolsOf(known))
  return symbols.length === 0 ? undefined : symbols.map((symbol) => ({ of: 'invoice', symbol }))
}

/** The name that equals the text, else all names that differ from it in case alone. */
function matchName(text: string, names: ReadonlySet<string>): readonly string[] {
  return names.has(text) ? [text] : equalButForCase(text, names)
}

function equalButForCase(text: string, names: ReadonlySet<string>): readonly string[] {
  return byLowerCase(names).get(text.toLowerCase()) ?? []
}

const byLowerCase = oncePerSet((names) => Map.groupBy(names, (name) => name.toLowerCase()))

const symbolsOf = oncePerSet((ids): ReadonlySet<string> => new Set([...ids].map(symbolOfCurrency)))

/** Remembers what was made of a set: an account may have tens of thousands of names, and a filter may look up a hundred. */
function oncePerSet<T>(make: (names: ReadonlySet<string>) => T): (names: ReadonlySet<string>) => T {
  const made = new WeakMap<ReadonlySet<string>, T>()
  return (names) => {
    const known = made.get(names) ?? make(names)
    made.set(names, known)
    return known
  }
}
