import { compareDecimals } from '../../domain/decimal.ts'
import { type Route, type RouteSort, type RouteTag, routeSpeeds } from '../../domain/route.ts'
import type { UnrankedRoute } from './assemble-route.ts'

/** What routes are ranked by. */
export type RankedTerms = Pick<UnrankedRoute, 'route' | 'isDirect' | 'totalCost' | 'unpriced'>

/**
 * Sorts and tags routes. By default direct routes come first, then those of which every cost is known, then by total cost, speed and id. CHEAPEST
 * are those with the lowest total cost in which no cost is left out, FASTEST those with the shortest duration.
 *
 * @returns a new array
 */
export function rankRoutes(routes: readonly RankedTerms[], sort?: RouteSort): Route[] {
  const ranked = routes.toSorted(orders[sort ?? 'USUAL'])
  const cheapest = ranked.filter((entry) => !entry.unpriced).toSorted(compareCost)[0]
  const shortest = Math.min(...ranked.map(({ route }) => route.estimatedDurationSeconds))
  return ranked.map((entry) => {
    const tags: RouteTag[] = []
    if (cheapest !== undefined && !entry.unpriced && compareCost(entry, cheapest) === 0) tags.push('CHEAPEST')
    if (entry.route.estimatedDurationSeconds === shortest) tags.push('FASTEST')
    return { ...entry.route, tags }
  })
}

function compareCost(a: RankedTerms, b: RankedTerms): number {
  return compareDecimals(a.totalCost, b.totalCost)
}

type Compare = (a: RankedTerms, b: RankedTerms) => number

const byDirect: Compare = (a, b) => Number(b.isDirect) - Number(a.isDirect)
const byCost: Compare = (a, b) => Number(a.unpriced) - Number(b.unpriced) || compareCost(a, b)
const bySpeed: Compare = (a, b) => routeSpeeds.indexOf(a.route.speed) - routeSpeeds.indexOf(b.route.speed)
const byDuration: Compare = (a, b) => a.route.estimatedDurationSeconds - b.route.estimatedDurationSeconds
const byId: Compare = (a, b) => (a.route.id < b.route.id ? -1 : a.route.id > b.route.id ? 1 : 0)

const inTurn = (...compares: readonly Compare[]): Compare => {
  return (a, b) => compares.reduce((decided, compare) => decided || compare(a, b), 0)
}

const orders: Readonly<Record<RouteSort | 'USUAL', Compare>> = {
  USUAL: inTurn(byDirect, byCost, bySpeed, byId),
  CHEAPEST: inTurn(byCost, bySpeed, byId),
  FASTEST: inTurn(byDuration, byCost, byId),
}
