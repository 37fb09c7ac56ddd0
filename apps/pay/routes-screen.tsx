/** @jsxImportSource preact */
import { type Checkout, type Route, Route_StepKind, Route_Tag } from '@waybill/client/checkout'
import { useEffect, useState } from 'preact/hooks'
import { formatAmount, formatShortAmount, formatUsd } from '../shared/format-amount.ts'
import { sentence } from '../shared/sentence.ts'
import { payTexts } from '../shared/texts.ts'
import type { Connected } from './connect-screen.tsx'
import { Address, Button, Screen } from './screen-parts.tsx'
import { type FoundRoutes, type Unavailable, useRoutes } from './use-routes.ts'

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
