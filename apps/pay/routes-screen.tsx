/** @jsxImportSource preact */
import type { Checkout, Route } from '@waybill/client/checkout'
import { useState } from 'preact/hooks'
import { formatAmount } from '../shared/format-amount.ts'
import { sentence } from '../shared/sentence.ts'
import { payTexts } from '../shared/texts.ts'
import type { Connected } from './connect-screen.tsx'
import { sayRoute } from './route-cost.ts'
import { Address, Button, Screen } from './screen-parts.tsx'
import { type MakesBatches, useBatching } from './use-batching.ts'
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
        <Button text={wallets.other} look="plain small" onClick={onOther} />
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
          look="main pay-button"
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
          look="plain"
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
