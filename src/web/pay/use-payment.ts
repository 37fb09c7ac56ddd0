import { type Checkout, type PayOutcome, type PayProgress, pay, type Route } from '@waybill/client/checkout'
import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import type { Connected } from './connect-screen.tsx'
import { addProgress, type PayStep } from './pay-steps.ts'

export type PaymentEnd = { readonly outcome: PayOutcome } | { readonly error: Error }

/** A payment that this page makes, or made before a reload. */
export interface MadePayment {
  /** Undefined for one of before a reload. */
  readonly route: Route | undefined
  /** What was outstanding when it began. */
  readonly outstanding: string
  readonly steps: readonly PayStep[]
  /** What the wallet is asked for, in words. */
  readonly asking?: string
  /** Whether the wallet has been asked for the last step. */
  readonly isLast: boolean
  /** Whether the payment itself has left the wallet. */
  readonly isSent: boolean
  readonly hashes: readonly string[]
  /** The explorer's page of a transaction: a template with `{hash}`. */
  readonly explorer: string | undefined
  readonly end?: PaymentEnd
}

interface PaymentTerms {
  readonly checkout: Checkout
  readonly paymentReference: string
  readonly outstanding: string
  readonly isPayable: boolean
}

/** The one payment of the page. It is kept while the request's state is shown, so that nothing is asked of a wallet again when that state changes. */
export function usePayment({ checkout, paymentReference, outstanding, isPayable }: PaymentTerms) {
  const [payment, setPayment] = useState<MadePayment>()
  const left = useRef<AbortController>(undefined)
  const isRunning = useRef(false)

  const begin = useCallback(
    async ({ address, provider }: Connected, route: Route | undefined) => {
      // A second click comes before the first has changed the screen.
      if (isRunning.current) return
      isRunning.current = true
      const own = new AbortController()
      left.current = own
      const first: MadePayment = {
        route,
        outstanding,
        steps: [],
        isLast: false,
        isSent: false,
        hashes: [],
        explorer: undefined,
      }
      if (route !== undefined) setPayment(first)
      const onProgress = (event: PayProgress) => setPayment((before = first) => afterProgress(before, event))
      const waybill = route === undefined ? NO_QUOTES : checkout
      const terms = { waybill, paymentReference, route, wallet: address, provider, signal: own.signal, onProgress }
      const end = await pay(terms).then(
        (outcome): PaymentEnd => ({ outcome }),
        (error: Error): PaymentEnd => ({ error }),
      )
      isRunning.current = false
      const isNothing = 'error' in end && (end.error === NOTHING_SENT || own.signal.aborted)
      setPayment((before = first) => (isNothing ? undefined : withEnd(before, end)))
    },
    [checkout, paymentReference, outstanding],
  )

  // Once others have paid, no further step is asked of the wallet.
  const isSent = payment?.isSent === true
  useEffect(() => {
    if (!isPayable && !isSent) left.current?.abort()
  }, [isPayable, isSent])

  return { payment, begin, leave: useCallback(() => setPayment(undefined), []) }
}

/** Nothing was sent before a reload. */
const NOTHING_SENT = new Error('no payment of this request was sent before')

/** pay waits for what was sent before it asks for a quote; without one it asks nothing of the wallet. */
const NO_QUOTES: Pick<Checkout, 'getPaymentCalldata'> = { getPaymentCalldata: () => Promise.reject(NOTHING_SENT) }

function afterProgress(before: MadePayment, event: PayProgress): MadePayment {
  const steps = addProgress(before.steps, event)
  if (event.type === 'QUOTED') {
    // A batch asks for all of it at once.
    const asking = event.quote.steps.map(({ message }) => message).join(' ')
    return { ...before, steps, asking, explorer: event.quote.explorer?.transaction }
  }
  if (event.type === 'ASKING') return { ...before, steps, isLast: event.step === event.steps, asking: event.message }
  if (event.type === 'SENT')
    return { ...before, steps, isSent: before.isLast, hashes: [...before.hashes, event.transactionHash] }
  if (event.type === 'BATCH_SENT') return { ...before, steps, isSent: true }
  if (event.type === 'WAITING_FOR_EARLIER')
    return {
      ...before,
      steps,
      isSent: true,
      hashes: event.transactionHash === undefined ? [] : [event.transactionHash],
    }
  return { ...before, steps }
}

function withEnd(before: MadePayment, end: PaymentEnd): MadePayment {
  const hashes = 'outcome' in end && 'transactionHashes' in end.outcome ? end.outcome.transactionHashes : before.hashes
  return { ...before, end, hashes }
}
