/** @jsxImportSource preact */
import { type Checkout, type Route, Route_StepKind, Route_Tag, type StreamedRoutes } from '@waybill/client/checkout'
import { useEffect, useState } from 'preact/hooks'
import { formatAmount, formatShortAmount, formatUsd } from '../shared/format-amount.ts'
import { toDate } from '../shared/format-time.ts'
import { sentence } from '../shared/sentence.ts'
import { payTexts } from '../shared/texts.ts'
import type { Connected } from './connect-screen.tsx'
import { Address, Button, Screen } from './screen-parts.tsx'
import { isRefusedForNow } from './use-request.ts'

interface RoutesProps {
  readonly checkout: Checkout
  readonly paymentReference: string
  readonly connected: Connected
  /** What is left to pay. */
  readonly outstanding: string
  readonly onChoose: (route: Route) => void
  readonly onOther: () => void
}

/** The ways to pay, the best first; or why there is none, and what would change that. */
export function RoutesScreen({ checkout, paymentReference, connected, outstanding, onChoose, onOther }: RoutesProps) {
  const { routes: texts, wallets } = payTexts
  const found = useRoutes({ checkout, paymentReference, outstanding, wallet: connected.address })
  const makesBatches = useBatching(connected)
  const [id, setId] = useState<string>()
  const { routes, isComplete, error } = found
  const route = routes.find((each) => each.id === id) ?? routes[0]
  const isPoor = isComplete && routes.length === 0 && error === undefined
  return (
    <Screen title={isPoor ? texts.none : texts.title}>
      <p class="small payer">
        {wallets.connected} <strong>{connected.name}</strong> <Address value={connected.address} />{' '}
        <Button text={wallets.other} kind="plain small" onClick={onOther} />
      </p>
      {error !== undefined && (
        <div class="notice bad stack gap-2" role="alert">
          <p>{texts.failed}</p>
          <p class="small">{error.message}</p>
          <Button text={payTexts.retry} onClick={found.refresh} />
        </div>
      )}
      {!isComplete && (
        <p class="quiet small" role="status">
          {found.isBusy === true ? payTexts.busy : texts.searching}
        </p>
      )}
      {routes.length > 0 && <RouteChoice {...{ routes, makesBatches }} chosen={route?.id} onChange={setId} />}
      {found.isDegraded && <p class="small quiet">{texts.degraded}</p>}
      {found.warnings.map(({ reason, message }) => (
        <p key={reason} class="notice warn stack gap-2">
          {sentence(message)}
        </p>
      ))}
      {isPoor && found.unavailable.length > 0 && <p>{texts.noneSays}</p>}
      {isComplete && <Missing unavailable={found.unavailable} isOpen={isPoor} />}
      {route !== undefined && (
        <Button
          text={texts.pay(`${formatAmount(route.sourceAmount)} ${route.token}`)}
          kind="main pay-button"
          isOff={!isComplete}
          onClick={() => onChoose(route)}
        />
      )}
    </Screen>
  )
}

interface ChoiceProps {
  readonly routes: readonly Route[]
  readonly makesBatches: MakesBatches
  readonly chosen: string | undefined
  readonly onChange: (id: string) => void
}

/** Shown before somebody asks for more, so that the button to pay stays in sight. */
const FIRST = 4

function RouteChoice({ routes, makesBatches, chosen, onChange }: ChoiceProps) {
  const [isOpen, setOpen] = useState(false)
  const shown = isOpen ? routes : routes.slice(0, FIRST)
  const say = (route: Route) => sayRoute(route, makesBatches(route.chainId))
  return (
    <fieldset class="routes stack gap-2">
      <legend class="unseen">{payTexts.routes.title}</legend>
      {shown.map(say).map(({ id, pays, where, costs, tags, confirmations, warnings }) => (
        <label key={id} class="route">
          <input type="radio" name="route" value={id} checked={id === chosen} onChange={() => onChange(id)} />
          <span class="route-main grow">
            <span class="route-title row gap-1">
              <span>
                <strong class="number">{pays}</strong> <span class="quiet">{where}</span>
              </span>
              <span class="row gap-1">
                {tags.map((tag) => (
                  <span key={tag} class="badge good">
                    {tag}
                  </span>
                ))}
              </span>
            </span>
            <span class="small quiet">{costs}</span>
            <span class="small quiet">{confirmations}</span>
            {warnings.map((warning) => (
              <span key={warning} class="small warning">
                {warning}
              </span>
            ))}
          </span>
        </label>
      ))}
      {shown.length < routes.length && (
        <Button
          text={payTexts.routes.others(routes.length - shown.length)}
          kind="plain"
          onClick={() => setOpen(true)}
        />
      )}
    </fieldset>
  )
}

/** Why the other ways cannot be taken, the most helpful first: one line for each remedy. */
function Missing({ unavailable, isOpen }: Pick<FoundRoutes, 'unavailable'> & { isOpen: boolean }) {
  if (unavailable.length === 0) return null
  return (
    <details class="missing" open={isOpen}>
      <summary class="small">{payTexts.routes.more(unavailable.length)}</summary>
      <ul class="bullets small stack gap-2">
        {unavailable.map((each) => (
          <li key={keyOf(each)}>
            <strong>{[each.token, each.chain].filter((part) => part !== undefined).join(' · ')}</strong>
            <p>
              {sentence(each.message)} <span class="quiet">{sentence(each.remedy)}</span>
            </p>
          </li>
        ))}
      </ul>
    </details>
  )
}

const keyOf = ({ chain, token, provider, reason }: Unavailable) => [chain, token, provider, reason].join()

/** From here on the page says what a swap costs against the market's price. */
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

/** @param chainId - `eip155:1` */
type MakesBatches = (chainId: string) => boolean

const NONE: MakesBatches = () => false

/** On which chains the wallet says that it makes several steps one (EIP-5792): its person is asked once. */
function useBatching({ provider, address }: Connected): MakesBatches {
  const [makesBatches, setMakesBatches] = useState<MakesBatches>(() => NONE)
  useEffect(() => {
    let isLeft = false
    const use = (answer: unknown) => !isLeft && setMakesBatches(() => readCapabilities(answer))
    const ask = async () => provider.request({ method: 'wallet_getCapabilities', params: [address] })
    ask().then(use, () => undefined)
    return () => {
      isLeft = true
    }
  }, [provider, address])
  return makesBatches
}

/** What a wallet says of itself by chain, in hex; `0x0` is every chain. */
export function readCapabilities(answer: unknown): MakesBatches {
  const ofChains = Object.entries((answer ?? {}) as Record<string, { atomic?: { status?: unknown } } | null>)
  const able = ofChains.filter(
    ([id, says]) => /^0x[0-9a-f]+$/i.test(id) && ['supported', 'ready'].includes(String(says?.atomic?.status)),
  )
  const ids = new Set(able.map(([id]) => BigInt(id)))
  return (chainId) => {
    const [, number = ''] = /^eip155:(\d+)$/.exec(chainId) ?? []
    return ids.has(0n) || (number !== '' && ids.has(BigInt(number)))
  }
}

type Unavailable = StreamedRoutes['unavailable'][number]

interface FoundRoutes {
  /** The best first. */
  readonly routes: readonly Route[]
  readonly unavailable: readonly Unavailable[]
  readonly warnings: readonly { readonly reason: string; readonly message: string }[]
  readonly isComplete: boolean
  readonly isDegraded: boolean
  /** Whether the service has refused the last call for now. The page asks again at the time that the service named. */
  readonly isBusy?: boolean
  readonly error?: Error
}

const NOTHING: FoundRoutes = { routes: [], unavailable: [], warnings: [], isComplete: false, isDegraded: false }
/** Asked for again no more often than this. */
const LEAST_MS = 10_000
const MOST_MS = 60_000
/** After a refusal that does not say when to come back. */
const REFUSED_MS = 5_000

interface RoutesTerms {
  readonly checkout: Checkout
  readonly paymentReference: string
  readonly wallet: string
  /** What is left to pay: other routes when it changes. */
  readonly outstanding: string
}

/** The ways in which a wallet can pay, as they are found, and again when their quotes expire. */
function useRoutes({ checkout, paymentReference, wallet, outstanding }: RoutesTerms) {
  const [found, setFound] = useState(NOTHING)
  const [round, setRound] = useState(0)
  useEffect(() => {
    const left = new AbortController()
    const { signal } = left
    const refresh = () => setRound((before) => before + 1)
    const read = async () => {
      const ranked: { readonly rank: number; readonly route: Route }[] = []
      for await (const { event } of checkout.streamPaymentRoutes({ paymentReference, wallet }, { signal })) {
        if (event.case === 'answer') {
          const { routes, unavailable, warnings, degraded } = event.value
          setFound({ routes, unavailable, warnings, isComplete: true, isDegraded: degraded })
          whenSeen(refreshInMs(routes), signal, refresh)
        } else if (event.case === 'route' && event.value.route !== undefined) {
          ranked.push({ rank: event.value.rank, route: event.value.route })
          const routes = ranked.toSorted((before, after) => before.rank - after.rank).map(({ route }) => route)
          // Later rounds keep what is shown until they are complete, so that nothing jumps.
          setFound((before) => (before.isComplete ? before : { ...before, routes, isBusy: false }))
        }
      }
    }
    read().catch((error: Error) => {
      if (signal.aborted) return
      if (isRefusedForNow(error)) {
        setFound((before) => ({ ...before, isBusy: true }))
        whenSeen(error.retryAfterMs ?? REFUSED_MS, signal, refresh)
      } else setFound((before) => ({ ...before, isComplete: true, error }))
    })
    return () => left.abort()
  }, [checkout, paymentReference, wallet, outstanding, round])
  return { ...found, refresh: () => setRound((before) => before + 1) }
}

/** Calls back after a time, and not before somebody looks at the page. */
function whenSeen(waitMs: number, signal: AbortSignal, callBack: () => void): void {
  const timer = setTimeout(() => {
    if (document.visibilityState === 'visible') callBack()
    else document.addEventListener('visibilitychange', callBack, { once: true, signal })
  }, waitMs)
  signal.addEventListener('abort', () => clearTimeout(timer))
}

function refreshInMs(routes: readonly Route[]): number {
  const ends = routes.flatMap(({ expiresAt }) => (expiresAt === undefined ? [] : [toDate(expiresAt).getTime()]))
  return Math.max(LEAST_MS, Math.min(MOST_MS, ...ends.map((end) => end - Date.now())))
}
