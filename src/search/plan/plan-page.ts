import { currencyFields } from '../filter/payment-filter.ts'
import type { FilterName } from '../filter/search-fields.ts'
import type { PageQuery } from '../page/page-query.ts'
import type { AccountStatistics } from '../sql/account-statistics.ts'
import { planByAmount } from './plan-by-amount.ts'
import { planByTime } from './plan-by-time.ts'
import { namingFields, planNamed } from './plan-named.ts'
import { amounts, DEFAULT_THRESHOLDS, dates, hasAny, type PlanThresholds, type Terms, termsOf } from './plan-terms.ts'
import type { Part, Plan, Shape } from './search-plan.ts'

/**
 * Chooses how to read a page.
 *
 * @param query - its filter has passed through `singleReadingAsFilter`
 * @returns the shapes to try, the cheapest expected first; the last one gives the whole page whatever it costs
 */
export function planPage(
  query: PageQuery,
  statistics: AccountStatistics,
  thresholds: PlanThresholds = DEFAULT_THRESHOLDS,
): Plan {
  const plan = shapesFor(termsOf(query, statistics, thresholds))
  return plan.slice(0, plan.findIndex(isWhole) + 1)
}

/** Whether a shape always gives the whole page. */
function isWhole(shape: Shape): boolean {
  switch (shape.kind) {
    case 'walk':
      return shape.parts.every(({ entryLimits }) => entryLimits === undefined)
    case 'gather':
      return shape.maxEntries === undefined
    case 'slices':
    case 'months':
    case 'plain':
      return true
  }
}

function shapesFor(terms: Terms): Plan {
  if (terms.given.includes('q')) return [{ kind: 'plain' }]
  if (terms.given.includes('txHash')) return planTransactions(terms)
  if (hasAny(terms, namingFields)) return planNamed(terms)
  return terms.query.sortBy === 'amount' ? planByAmount(terms) : planByTime(terms)
}

/** Whether the plan depends on statistics; if not, they need not be read. */
export function needsStatistics({ filter, sortBy }: PageQuery): boolean {
  const has = (names: readonly FilterName[]) => names.some((name) => filter[name] !== undefined)
  if (has(['txHash', 'q'])) return false
  // named twice over, the payments of one name are walked by status, each status in proportion to its share
  if (namingFields.filter((name) => filter[name] !== undefined).length > 1) return true
  if (has(['network', 'destinationNetwork', 'type', ...currencyFields, ...amounts])) return true
  return sortBy === 'amount' && has(['status', ...dates])
}

/** The payments of transactions are few, and are gathered. */
function planTransactions({ given, thresholds }: Terms): Plan {
  const part: Part = {
    index: 'payments_account_id_tx_hash_event_index_network_key, payments_refund_tx, payments_source_tx',
    order: 'none',
    within: ['txHash'],
    residual: given.filter((name) => name !== 'txHash'),
  }
  return [
    { kind: 'gather', parts: [part], mayOverlap: false, maxEntries: thresholds.gatherRows },
    { kind: 'gather', parts: [part], mayOverlap: false },
  ]
}
