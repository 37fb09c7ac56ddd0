import { compareDecimals } from '../../domain/decimal.ts'
import { type Route, type RouteSort, type RouteTag, type RouteWarning, routeSpeeds } from '../../domain/route.ts'
import type { Reason } from '../../errors/reasons.ts'
import type { UnrankedRoute } from './assemble-route.ts'

/** What routes are ranked by. */
export type RankedTerms = Pick<UnrankedRoute, 'route' | 'isDirect' | 'totalCost' | 'unpriced'>

/** The warning that the price of a route is off the market, or is not known to be on it. */
export function priceWarningOf({ warnings }: Pick<Route, 'warnings'>): RouteWarning | undefined {
  return warnings.find(({ reason }) => PRICE_WARNINGS.has(reason))
}

const PRICE_WARNINGS: ReadonlySet<string> = new Set<Reason>(['SWAP_OFF_MARKET', 'PRICE_UNCHECKED'])

/**
 * Sorts and tags routes. Routes that the wallet has the gas for come first, among them those whose price is known to be the market's. Within these
 * direct routes come first, then those of which every cost is known, then by total cost, speed and id. CHEAPEST are those with the lowest total
 * cost in which no cost is left out, FASTEST those with the shortest duration; routes without gas or with a doubtful price have no tags.
 *
 * @returns a new array
 */
export function rankRoutes(routes: readonly RankedTerms[], sort?: RouteSort): Route[] {
  const ranked = sortRoutes(routes, sort)
  const good = ranked.filter(({ route }) => !lacksGas(route) && priceWarningOf(route) === undefined)
  const cheapest = good.filter((entry) => !entry.unpriced).toSorted(compareCost)[0]
  const shortest = Math.min(...good.map(({ route }) => route.estimatedDurationSeconds))
  return ranked.map((entry) => {
    const tags: RouteTag[] = []
    if (!good.includes(entry)) return { ...entry.route, tags }
    if (cheapest !== undefined && !entry.unpriced && compareCost(entry, cheapest) === 0) tags.push('CHEAPEST')
    if (entry.route.estimatedDurationSeconds === shortest) tags.push('FASTEST')
    return { ...entry.route, tags }
  })
}

/** Sorts routes as {@link rankRoutes} does. @returns a new array */
export function sortRoutes<T extends RankedTerms>(routes: readonly T[], sort: RouteSort | 'USUAL' = 'USUAL'): T[] {
  return routes.toSorted(inOrder(byGas, byPrice, orders[sort]))
}

function compareCost(a: RankedTerms, b: RankedTerms): number {
  return compareDecimals(a.totalCost, b.totalCost)
}

type Compare = (a: RankedTerms, b: RankedTerms) => number

/** Gas of which it is not known whether it suffices counts as enough. */
const lacksGas = ({ readiness }: Pick<Route, 'readiness'>) => readiness.hasEnoughGas === false

const byGas: Compare = (a, b) => Number(lacksGas(a.route)) - Number(lacksGas(b.route))
const byPrice: Compare = (a, b) =>
  Number(priceWarningOf(a.route) !== undefined) - Number(priceWarningOf(b.route) !== undefined)
const byDirect: Compare = (a, b) => Number(b.isDirect) - Number(a.isDirect)
const byCost: Compare = (a, b) => Number(a.unpriced) - Number(b.unpriced) || compareCost(a, b)
const bySpeed: Compare = (a, b) => routeSpeeds.indexOf(a.route.speed) - routeSpeeds.indexOf(b.route.speed)
const byDuration: Compare = (a, b) => a.route.estimatedDurationSeconds - b.route.estimatedDurationSeconds
const byId: Compare = (a, b) => (a.route.id < b.route.id ? -1 : a.route.id > b.route.id ? 1 : 0)

const inOrder = (...compares: readonly Compare[]): Compare => {
  return (a, b) => compares.reduce((decided, compare) => decided || compare(a, b), 0)
}

const orders: Readonly<Record<RouteSort | 'USUAL', Compare>> = {
  USUAL: inOrder(byDirect, byCost, bySpeed, byId),
  CHEAPEST: inOrder(byCost, bySpeed, byId),
  FASTEST: inOrder(byDuration, byCost, byId),
}
