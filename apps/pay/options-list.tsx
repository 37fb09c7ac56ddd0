/** @jsxImportSource preact */
import type { Checkout, Route } from '@waybill/client/checkout'
import { useEffect, useState } from 'preact/hooks'
import { payTexts } from './language.ts'
import { whenSeen } from './refresh.ts'
import { sayRoute } from './say-route.ts'
import { Button } from './screen-parts.tsx'

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
  const [round, setRound] = useState(0)
  useEffect(() => {
    if (!isPayable) return
    const left = new AbortController()
    const { signal } = left
    checkout.getPaymentOptions({ paymentReference }, { signal }).then(setFound, () => {
      if (!signal.aborted) whenSeen(AGAIN_MS, signal, () => setRound((before) => before + 1))
    })
    return () => left.abort()
  }, [checkout, paymentReference, outstanding, isPayable, round])
  return found
}

/** Shown before somebody asks for more. */
const FIRST = 4

/** What each way would cost, before a wallet is connected. */
export function OptionsList({ found, network }: { found: Options | undefined; network: string }) {
  const { options: texts, routes } = payTexts
  const [isOpen, setOpen] = useState(false)
  const all = found?.options ?? []
  const shown = isOpen ? all : all.slice(0, FIRST)
  return (
    <section class="options stack gap-2">
      <h2>{texts.title}</h2>
      <p class="small quiet" role="status">
        {found === undefined ? texts.searching : all.length === 0 ? texts.none : texts.says}
      </p>
      <ul class="stack gap-2">
        {shown.map((route) => {
          const { id, pays, worth, where, costs } = sayRoute(route, { makesBatches: false, network })
          return (
            <li key={id} class="option small">
              <span>
                <strong class="number">{pays}</strong> <span class="quiet">{where}</span>
              </span>
              <span class="quiet number">{worth}</span>
              <span class="quiet">{costs}</span>
            </li>
          )
        })}
      </ul>
      {shown.length < all.length && (
        <Button text={routes.others(all.length - shown.length)} kind="plain" onClick={() => setOpen(true)} />
      )}
    </section>
  )
}
