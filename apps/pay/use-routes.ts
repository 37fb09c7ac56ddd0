import type { Checkout, Route, StreamedRoutes } from '@waybill/client/checkout'
import { useEffect, useState } from 'preact/hooks'
import { toDate } from '../shared/format-time.ts'
import { isRefusedForNow } from './use-request.ts'

export type Unavailable = StreamedRoutes['unavailable'][number]

export interface FoundRoutes {
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
export function useRoutes({ checkout, paymentReference, wallet, outstanding }: RoutesTerms) {
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
