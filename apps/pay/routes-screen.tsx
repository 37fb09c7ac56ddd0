/** @jsxImportSource preact */
import type { Checkout, Route, StreamedRoutes } from '@waybill/client/checkout'
import { useState } from 'preact/hooks'
import { chainName } from '../shared/chain-name.ts'
import { toDate } from '../shared/format-time.ts'
import type { Connected } from './connect-screen.tsx'
import { payTexts } from './language.ts'
import { useAsking } from './refresh.ts'
import { sayReason, sayRoute } from './say-route.ts'
import { Address, Button, Screen, useFirst } from './screen-parts.tsx'
import { isRefusedForNow, REFUSED_MS } from './use-request.ts'

interface RoutesProps {
  readonly checkout: Checkout
  readonly paymentReference: string
  /** The chain on which the payee is paid. */
  readonly network: string
  readonly connected: Connected
  /** What is left to pay. */
  readonly outstanding: string
  readonly onChoose: (route: Route) => void
  readonly onOther: () => void
}

/** Whether the wallet could take a route now. Where it is not known, the wallet may have a way of its own to pay for gas. */
const canTake = ({ readiness }: Route) => readiness?.hasEnoughGas !== false

/** The ways to pay, the best first, and those that lack something below; or why there is none, and what would change that. */
export function RoutesScreen(props: RoutesProps) {
  const { checkout, paymentReference, network, connected, outstanding, onChoose, onOther } = props
  const { routes: texts, wallets } = payTexts
  const found = useRoutes({ checkout, paymentReference, outstanding, wallet: connected.address })
  const [id, setId] = useState<string>()
  const { routes: all, isComplete, error } = found
  const [routes, lacking] = [all.filter(canTake), all.filter((each) => !canTake(each))]
  const route = routes.find((each) => each.id === id) ?? routes[0]
  const isPoor = isComplete && routes.length === 0 && error === undefined
  const say = (each: Route) => sayRoute(each, network)
  const chosen = route && say(route)
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
      {chosen !== undefined && <RouteChoice said={routes.map(say)} chosen={chosen.id} onChange={setId} />}
      {found.isDegraded && <p class="small quiet">{texts.degraded}</p>}
      {found.warnings.map((warning) => (
        <p key={warning.reason} class="notice warn stack gap-2">
          {sayReason(warning)}
        </p>
      ))}
      {route !== undefined && chosen !== undefined && (
        <>
          <Button
            text={payTexts.payNow(chosen.pays)}
            kind="main pay-button"
            isOff={!isComplete}
            onClick={() => onChoose(route)}
          />
          {chosen.exactly !== chosen.pays && <p class="small quiet number exactly">{chosen.exactly}</p>}
          {chosen.notes.map((note) => (
            <p key={note} class="small quiet">
              {note}
            </p>
          ))}
        </>
      )}
      {isComplete && <Missing lacking={lacking.map(say)} unavailable={found.unavailable} isOpen={isPoor} />}
    </Screen>
  )
}

type SaidRoute = ReturnType<typeof sayRoute>

interface ChoiceProps {
  readonly said: readonly SaidRoute[]
  readonly chosen: string
  readonly onChange: (id: string) => void
}

function RouteChoice({ said, chosen, onChange }: ChoiceProps) {
  const { shown, more } = useFirst(said)
  // What holds of all ways sets none apart.
  const setsApart = (tag: string) => !said.every(({ tags }) => tags.includes(tag))
  return (
    <fieldset class="routes stack gap-2">
      <legend class="unseen">{payTexts.routes.title}</legend>
      {shown.map((route) => (
        <label key={route.id} class="card route">
          <input
            type="radio"
            name="route"
            value={route.id}
            checked={route.id === chosen}
            onChange={() => onChange(route.id)}
          />
          <RouteLines {...route} tags={route.tags.filter(setsApart)} />
        </label>
      ))}
      {more}
    </fieldset>
  )
}

function RouteLines({ pays, exactly, worth, where, costs, tags, confirmations, warnings }: SaidRoute) {
  return (
    <span class="route-main grow">
      <span class="row apart gap-1">
        <span>
          <strong class="number" title={exactly}>
            {pays}
          </strong>{' '}
          <span class="quiet">{where}</span>
        </span>
        <span class="row gap-1">
          {tags.map((tag) => (
            <span key={tag} class="badge good">
              {tag}
            </span>
          ))}
        </span>
      </span>
      <span class="small quiet number">{worth}</span>
      <span class="small quiet">{costs}</span>
      <span class="small quiet">{confirmations}</span>
      {warnings.map((warning) => (
        <span key={warning} class="small warning">
          {warning}
        </span>
      ))}
    </span>
  )
}

interface MissingProps extends Pick<FoundRoutes, 'unavailable'> {
  /** Routes for which the wallet lacks the gas. */
  readonly lacking: readonly SaidRoute[]
  readonly isOpen: boolean
}

/** The other ways, what each is missing, the nearest first: they cannot be chosen. */
function Missing({ lacking, unavailable, isOpen }: MissingProps) {
  const ways = [
    ...lacking.map(({ id, pays, where, warnings }) => (
      <li key={id}>
        <strong class="number">{pays}</strong> <span class="quiet">{where}</span>
        {warnings.map((warning) => (
          <p key={warning}>{warning}</p>
        ))}
      </li>
    )),
    ...unavailable
      .toSorted((one, other) => rankOf(one) - rankOf(other))
      .map((each) => (
        <li key={keyOf(each)}>
          <strong>{[each.token, chainName(each.chain ?? '')].filter((part) => part !== undefined).join(' · ')}</strong>
          <p>{sayReason(each)}</p>
        </li>
      )),
  ]
  const { shown, more } = useFirst(ways)
  if (ways.length === 0) return null
  return (
    <details class="missing" open={isOpen || lacking.length > 0}>
      <summary class="small">{payTexts.routes.more(ways.length)}</summary>
      <ul class="bullets small stack gap-2">{shown}</ul>
      {more}
    </details>
  )
}

/** What the wallet can mend, which is more of a token, comes first. */
const rankOf = ({ metadata }: Unavailable) => (metadata.missing === undefined ? 1 : 0)

const keyOf = ({ chain, token, provider, reason }: Unavailable) => [chain, token, provider, reason].join()

type Unavailable = StreamedRoutes['unavailable'][number]

interface FoundRoutes {
  /** The best first. */
  readonly routes: readonly Route[]
  readonly unavailable: readonly Unavailable[]
  readonly warnings: StreamedRoutes['warnings']
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
  const refresh = useAsking(
    (signal, askAgainIn) => {
      const read = async () => {
        const ranked: { readonly rank: number; readonly route: Route }[] = []
        for await (const { event } of checkout.streamPaymentRoutes({ paymentReference, wallet }, { signal })) {
          if (event.case === 'answer') {
            const { routes, unavailable, warnings, degraded } = event.value
            setFound({ routes, unavailable, warnings, isComplete: true, isDegraded: degraded })
            // A chain that did not answer may hold the wallet's one way.
            askAgainIn(degraded ? LEAST_MS : refreshInMs(routes))
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
          askAgainIn(error.retryAfterMs ?? REFUSED_MS)
        } else setFound((before) => ({ ...before, isComplete: true, error }))
      })
    },
    [checkout, paymentReference, wallet, outstanding],
  )
  return { ...found, refresh }
}

function refreshInMs(routes: readonly Route[]): number {
  const ends = routes.flatMap(({ expiresAt }) => (expiresAt === undefined ? [] : [toDate(expiresAt).getTime()]))
  return Math.max(LEAST_MS, Math.min(MOST_MS, ...ends.map((end) => end - Date.now())))
}
