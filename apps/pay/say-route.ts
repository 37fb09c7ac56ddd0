import { type Route, Route_StepKind, Route_Tag } from '@waybill/client/checkout'
import { chainName } from '../shared/chain-name.ts'
import { formatAmount, formatAtLeast, formatShortAmount, formatUsd, formatWorth } from '../shared/format-amount.ts'
import { formatOnce, formatSpan } from '../shared/format-time.ts'
import { sentence } from '../shared/sentence.ts'
import { payTexts } from './language.ts'

/** From here on the page says what a swap costs against the market's price. */
const LEAST_IMPACT = 0.001

/** What a payer reads of a route. @param network - the chain on which the payee is paid */
export function sayRoute(route: Route, network: string) {
  const { routes, reasons } = payTexts
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
    /** The same with all digits. */
    exactly: `${formatAmount(route.sourceAmount)} ${route.token}`,
    /** `≈ $24.50` */
    worth: route.sourceAmountInUsd === undefined ? '' : formatWorth(route.sourceAmountInUsd),
    where: routes.on(chainName(route.chain)),
    /** `Fees $0.12, about 20 seconds` */
    costs: routes.costs(fees, formatSpan(route.estimatedDurationSeconds, undefined, 'long')),
    tags: [
      ...(route.tags.includes(CHEAPEST) ? [routes.cheapest] : []),
      ...(route.tags.includes(FASTEST) ? [routes.fastest] : []),
    ],
    /** `Up to 2 confirmations in your wallet`: some wallets make several steps one. */
    confirmations: routes.confirmations(steps),
    warnings: [
      ...route.warnings.map(sayReason),
      ...(route.priceImpact >= LEAST_IMPACT ? [routes.impact(percentOf(route.priceImpact))] : []),
    ],
    /** What happens on the way, for whoever takes it. */
    notes: [
      ...(route.readiness?.needsApproval === true ? [reasons.approval] : []),
      ...(route.chain === network ? [] : [reasons.bridge]),
    ],
  }
}

/** A reason of the service, and the values that belong to it. */
interface Reasoned {
  readonly reason: string
  readonly message: string
  readonly remedy?: string
  readonly metadata?: Readonly<Record<string, string>>
}

/** Reasons that a payer need not tell apart. */
const sameWords: Readonly<Record<string, string>> = {
  PAYER_SCREENED: 'PAYER_NOT_ALLOWED',
  SCREENING_UNAVAILABLE: 'CHAIN_UNREACHABLE',
}

/** A reason in the words of the page's language. One that it has no words for is said as the service says it, in English. */
export function sayReason({ reason, message, remedy = '', metadata = {} }: Reasoned): string {
  const { reasons } = payTexts
  const { missing, token = '', currency = '', chain = '' } = metadata
  if (missing !== undefined && reason === 'INSUFFICIENT_GAS') {
    return reasons.INSUFFICIENT_GAS(formatAtLeast(missing, 3), currency, chainName(chain))
  }
  if (missing !== undefined && (reason === 'INSUFFICIENT_BALANCE' || reason === 'CROSSCHAIN_BALANCE_TOO_LOW')) {
    return reasons[reason](formatAtLeast(missing), token, chainName(chain))
  }
  const said = (reasons as Readonly<Record<string, unknown>>)[sameWords[reason] ?? reason]
  return typeof said === 'string'
    ? said
    : [message, remedy]
        .filter((text) => text !== '')
        .map(sentence)
        .join(' ')
}

const percentOf = (fraction: number) =>
  formatOnce(Intl.NumberFormat, undefined, { style: 'percent', maximumSignificantDigits: 2 } as const).format(fraction)
