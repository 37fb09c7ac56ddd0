/** @jsxImportSource preact */
import type { Checkout, Route } from '@waybill/client/checkout'
import { useState } from 'preact/hooks'
import { payTexts } from './language.ts'
import { useAsking } from './refresh.ts'
import { sayRoute } from './say-route.ts'
import { useFirst } from './screen-parts.tsx'

/** After this time a question that failed is asked again. One that was answered is not: a wallet's own routes are quoted anew. */
const AGAIN_MS = 30_000

export interface Options {
  /** What is to be paid: a decimal string. */
  readonly amount: string
  readonly options: readonly Route[]
  readonly paymentUri?: string | undefined
}

interface OptionsTerms {
  readonly checkout: Checkout
  readonly paymentReference: string
  /** Other options when it changes. */
  readonly outstanding: string
  readonly isPayable: boolean
}

/** The ways to pay without a wallet. Undefined until they are known; a failure shows none, and is tried again. */
export function useOptions(terms: OptionsTerms): Options | undefined {
  const { checkout, paymentReference, outstanding, isPayable } = terms
  const [found, setFound] = useState<Options>()
  useAsking(
    (signal, askAgainIn) => {
      if (!isPayable) return
      checkout.getPaymentOptions({ paymentReference }, { signal }).then(setFound, () => {
        if (!signal.aborted) askAgainIn(AGAIN_MS)
      })
    },
    [checkout, paymentReference, outstanding, isPayable],
  )
  return found
}

/** What each way would cost, before a wallet is connected. */
export function OptionsList({ found, network }: { found: Options | undefined; network: string }) {
  const { options: texts } = payTexts
  const all = found?.options ?? []
  const { shown, more } = useFirst(all)
  return (
    <section class="options stack gap-2">
      <h2>{texts.title}</h2>
      <p class="small quiet" role="status">
        {found === undefined ? texts.searching : all.length === 0 ? texts.none : texts.says}
      </p>
      <ul class="stack gap-2">
        {shown.map((route) => {
          const { id, pays, worth, where, costs } = sayRoute(route, network)
          return (
            <li key={id} class="card option row apart small">
              <span>
                <strong class="number">{pays}</strong> <span class="quiet">{where}</span>
              </span>
              <span class="quiet number">{worth}</span>
              <span class="quiet">{costs}</span>
            </li>
          )
        })}
      </ul>
      {more}
    </section>
  )
}
