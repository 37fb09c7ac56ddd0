import type { Token } from '../../domain/currency.ts'
import type { Candidate, Provider } from '../plans/provider.ts'

/** The id of paying a request in its payment currency on its chain. */
export const DIRECT_ROUTE_ID = 'REQUEST_NETWORK_PAYMENT'

/** The id of paying many requests at once, by which no single one is paid. */
export const BATCH_ROUTE_ID = 'REQUEST_NETWORK_BATCH'

/** The letters, digits and underscores of a symbol or name, in upper case: `USDC.e` → `USDCE`. */
function sanitise(text: string): string {
  return text.toUpperCase().replace(/[^A-Z0-9_]/g, '')
}

function idOfPair(source: Token, destination: Token): string {
  return [source.chain, destination.chain, source.symbol, destination.symbol].map(sanitise).join('_')
}

/**
 * The id of a candidate's route by one provider. It depends on the configuration alone: routes of any provider but the first configured for a
 * kind end in the provider's name, whether or not the first one answered.
 */
export function routeId(candidate: Candidate, provider: Pick<Provider, 'name'>, isFirstOfItsKind: boolean): string {
  const pays = candidate.kind === 'DIRECT' || candidate.kind === 'CONVERSION'
  const id = pays ? DIRECT_ROUTE_ID : idOfPair(candidate.source, candidate.destination)
  return isFirstOfItsKind ? id : `${id}_${sanitise(provider.name.replaceAll('-', '_'))}`
}

/**
 * Checks at start that no two routes can have the same id, whatever tokens are source and destination.
 *
 * @param providerNames - of all providers
 * @throws RangeError that names the two
 */
export function checkRouteIds(tokens: readonly Token[], providerNames: Iterable<string>): void {
  const suffixes = ['', ...Array.from(providerNames, (name) => `_${sanitise(name.replaceAll('-', '_'))}`)]
  const owners = new Map(suffixes.map((suffix) => [DIRECT_ROUTE_ID + suffix, `the direct payment${suffix}`]))
  for (const token of tokens) {
    if (sanitise(token.symbol) === '') throw new RangeError(`the symbol "${token.symbol}" has no letter or digit`)
  }
  for (const source of tokens) {
    for (const destination of tokens) {
      if (source === destination) continue
      for (const suffix of suffixes) {
        const id = idOfPair(source, destination) + suffix
        const owner = `${source.id} to ${destination.id}${suffix}`
        const other = owners.get(id)
        if (other !== undefined) throw new RangeError(`${other} and ${owner} have the same route id ${id}: rename one`)
        owners.set(id, owner)
      }
    }
  }
}
