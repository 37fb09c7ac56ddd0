/** The answer of a search for routes in one sentence for support, and as plain text for the customer. */
import type { GetPaymentRoutesResponse, Route, UnavailableRoute, Warning } from '@waybill/client'
import { formatShortAmount, symbolOf } from '../../shared/format-amount.ts'
import { sentence } from '../../shared/sentence.ts'
import { whyTexts } from '../../shared/texts.ts'

export interface Verdict {
  readonly tone: 'good' | 'warn' | 'bad'
  readonly title: string
  /** More sentences. */
  readonly says: string
}

/** Reasons for which a request takes no payment at all, or none from this wallet. */
const closed: Readonly<Record<string, Pick<Verdict, 'tone' | 'title'>>> = {
  REQUEST_ALREADY_PAID: { tone: 'good', title: whyTexts.verdict.paid },
  PAYMENT_PENDING: { tone: 'warn', title: whyTexts.verdict.pending },
  REQUEST_CANCELLED: { tone: 'bad', title: whyTexts.verdict.cancelled },
  REQUEST_EXPIRED: { tone: 'bad', title: whyTexts.verdict.expired },
  WALLET_IS_PAYEE: { tone: 'bad', title: whyTexts.verdict.ownWallet },
  PAYER_NOT_ALLOWED: { tone: 'bad', title: whyTexts.verdict.notAllowed },
  PAYER_SCREENED: { tone: 'bad', title: whyTexts.verdict.screened },
}

export function isClosing({ reason }: Pick<Warning, 'reason'>): boolean {
  return reason in closed
}

/** Whether a wallet could send this route now. Unknown gas counts as enough: others may pay it. */
function isReady({ readiness }: Pick<Route, 'readiness'>): boolean {
  return readiness?.hasEnoughGas !== false
}

export function sayVerdict(answer: GetPaymentRoutesResponse): Verdict {
  const stop = answer.warnings.find(isClosing)
  if (stop !== undefined) return { ...closed[stop.reason]!, says: sentence(stop.message) }
  const ready = answer.routes.filter(isReady)
  if (ready.length > 0) return sayCan(ready, answer)
  return answer.routes.length > 0 ? sayNeedsGas(answer) : sayCannot(answer)
}

function sayCan(ready: readonly Route[], answer: GetPaymentRoutesResponse): Verdict {
  const { can, cheapest, only, lacksGas } = whyTexts.verdict
  const [best] = byCost(ready) as [Route]
  const withoutGas = answer.routes.length - ready.length
  const says = [
    (ready.length === 1 ? only : cheapest)(sayWay(best), sayFee(best)),
    ...(withoutGas > 0 ? [lacksGas(withoutGas)] : []),
    ...sayDegraded(answer),
  ]
  return { tone: 'good', title: can(ready.length), says: says.map(sentence).join(' ') }
}

function sayNeedsGas(answer: GetPaymentRoutesResponse): Verdict {
  const [best] = byCost(answer.routes) as [Route]
  const gas = best.warnings.find(({ reason }) => reason === 'INSUFFICIENT_GAS')
  const says = [...(gas === undefined ? [] : [gas.message]), ...sayDegraded(answer)]
  return { tone: 'warn', title: whyTexts.verdict.needsGas, says: says.map(sentence).join(' ') }
}

function sayCannot(answer: GetPaymentRoutesResponse): Verdict {
  const { cannot, cannotAsKnown, help, nothing } = whyTexts.verdict
  const what = sayMoney(answer.amount, answer.currency)
  const [best] = byUse(answer.unavailable)
  const says = [best === undefined ? nothing : help(best.remedy), ...sayDegraded(answer)]
  return {
    tone: answer.degraded ? 'warn' : 'bad',
    title: (answer.degraded ? cannotAsKnown : cannot)(what),
    says: says.map(sentence).join(' '),
  }
}

/** Why sources failed, each said once. */
function sayDegraded({ degraded, unavailable }: GetPaymentRoutesResponse): string[] {
  if (!degraded) return []
  const failures = new Set(unavailable.filter(({ reason }) => isFailure(reason)).map(({ message }) => message))
  return [[whyTexts.verdict.degraded, [...failures].join('; ')].filter((text) => text !== '').join(': ')]
}

/** Whether a chain or a provider failed, so that asking again may help. */
function isFailure(reason: string): boolean {
  return /_(?:TIMEOUT|UNREACHABLE|INCONSISTENT|QUOTA_EXHAUSTED|UNAVAILABLE)$/.test(reason)
}

/** Routes whose costs are not completely known come last, as in the service's own order. */
function byCost(routes: readonly Route[]): Route[] {
  return routes.toSorted((a, b) => Number(b.feeIsComplete) - Number(a.feeIsComplete) || a.totalCost - b.totalCost)
}

/** What helps most first: money for the direct payment, money for others, then the rest in the service's order. */
export function byUse(missing: readonly UnavailableRoute[]): UnavailableRoute[] {
  const rank = ({ reason, provider }: UnavailableRoute) => {
    if (reason === 'INSUFFICIENT_BALANCE') return provider === 'request-network' ? 0 : 1
    if (reason === 'CROSSCHAIN_BALANCE_TOO_LOW') return 2
    return isFailure(reason) ? 4 : 3
  }
  return missing.toSorted((a, b) => rank(a) - rank(b))
}

/** `150 USDC on ETHEREUM, directly` */
export function sayWay(route: Route): string {
  return `${whyTexts.on(`${formatShortAmount(route.sourceAmount)} ${route.token}`, route.chain)}, ${sayHow(route)}`
}

export function sayHow({ id, provider, chain, feeCurrency }: Route): string {
  if (id === 'REQUEST_NETWORK_PAYMENT') return whyTexts.direct
  return networkOf(feeCurrency) === chain ? whyTexts.swap(provider) : whyTexts.bridge(provider)
}

function sayFee({ feeAmount, feeCurrency, feeIsComplete }: Route): string {
  const fee = `${formatShortAmount(feeAmount)} ${symbolOf(feeCurrency)}`
  return feeIsComplete ? fee : `${whyTexts.routes.atLeast} ${fee}`
}

/** `150 USDC on ETHEREUM`, `500 USD` */
export function sayMoney(amount: string, currency: string): string {
  const network = networkOf(currency)
  const money = `${formatShortAmount(amount)} ${symbolOf(currency)}`
  return network === undefined ? money : whyTexts.on(money, network)
}

/** The network of a currency id, `USDC-BASE`; none of an ISO 4217 code, `USD`. */
const networkOf = (currency: string) => /-([^-]*)$/.exec(currency)?.[1]

export interface CustomerQuestion {
  readonly reference: string
  readonly wallet: string
  readonly answeredAt: string
}

/** The answer as plain text for the owner of the wallet, without a remedy that only the operator has. */
export function sayToCustomer(
  answer: GetPaymentRoutesResponse,
  { reference, wallet, answeredAt }: CustomerQuestion,
): string {
  const { about, asOf } = whyTexts.customer
  const { title, says } = sayVerdict(answer)
  const [best] = byUse(answer.unavailable)
  const isTheirs = answer.routes.length > 0 || answer.warnings.some(isClosing) || /BALANCE/.test(best?.reason ?? '')
  const lines = [about(sayMoney(answer.amount, answer.currency), reference, wallet), sentence(title)]
  return [...lines, ...(isTheirs ? [says] : []), '', asOf(answeredAt)].join('\n')
}
