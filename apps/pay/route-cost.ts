import { type Route, Route_StepKind, Route_Tag } from '@waybill/client/checkout'
import { formatShortAmount, formatUsd } from '../shared/format-amount.ts'
import { sentence } from '../shared/sentence.ts'
import { payTexts } from '../shared/texts.ts'

/** From here on a payer is told what a swap costs him against the market's price. */
const LEAST_IMPACT = 0.001

/**
 * What a payer reads of a route.
 *
 * @param makesBatches - whether the wallet makes approval and payment one step on this chain
 */
export function sayRoute(route: Route, makesBatches: boolean) {
  const { routes } = payTexts
  const { CHEAPEST, FASTEST } = Route_Tag
  const steps = route.readiness?.steps.filter((kind) => kind !== Route_StepKind.STEP_KIND_UNSPECIFIED).length ?? 1
  const known =
    route.feeInUsd === undefined
      ? `${formatShortAmount(route.feeAmount)} ${route.feeCurrency}`
      : formatUsd(route.feeInUsd)
  const fees = route.feeIsComplete ? known : routes.andMore(known)
  return {
    id: route.id,
    /** `24.5 USDC` */
    pays: `${formatShortAmount(route.sourceAmount)} ${route.token}`,
    where: routes.on(route.chain),
    /** `Fees $0.12, about 20 seconds` */
    costs: routes.costs(fees, route.estimatedDurationSeconds),
    tags: [
      ...(route.tags.includes(CHEAPEST) ? [routes.cheapest] : []),
      ...(route.tags.includes(FASTEST) ? [routes.fastest] : []),
    ],
    /** `2 confirmations in your wallet` */
    confirmations: routes.confirmations(makesBatches ? 1 : steps),
    warnings: [
      // The service's words name what is missing, and what a pool that is off the market takes.
      ...route.warnings.map(({ message }) => sentence(message)),
      ...(route.priceImpact >= LEAST_IMPACT ? [routes.impact(percent.format(route.priceImpact))] : []),
    ],
  }
}

const percent = new Intl.NumberFormat(undefined, { style: 'percent', maximumSignificantDigits: 2 })
