import type { Checkout, Route, StreamedRoutes } from '@waybill/client/checkout'
import { useEffect, useState } from 'preact/hooks'
import { toDate } from '../look/format-time.ts'

export type Unavailable = StreamedRoutes['unavailable'][number]

export interface FoundRoutes {
  /** The best first. */
  readonly routes: readonly Route[]
  readonly unavailable: readonly Unavailable[]
  readonly warnings: readonly { readonly reason: string; readonly message: string }[]
  readonly isComplete: boolean
  readonly isDegraded: boolean
  readonly error?: Error
}

const NOTHING: FoundRoutes = { routes: [], unavailable: [], warnings: [], isComplete: false, isDegraded: false }
/** Quotes live for about a minute; asked for again no more often than this. */
const LEAST_MS = 10_000

/** The ways in which a wallet can pay, as they are found, and again when their quotes expire. @param wallet - undefined asks for nothing */
export function useRoutes(checkout: Checkout, paymentReference: string, wallet: string | undefined) {
  const [found, setFound] = useState(NOTHING)
  const [round, setRound] = useState(0)
  useEffect(() => setFound(NOTHING), [wallet])
  useEffect(() => {
    if (wallet === undefined) return
    const left = new AbortController()
    let timer: ReturnType<typeof setTimeout> | undefined
    const read = async () => {
      const ranked: { readonly rank: number; readonly route: Route }[] = []
      const missing: Unavailable[] = []
      for await (const { event } of checkout.streamPaymentRoutes(
        { paymentReference, wallet },
        { signal: left.signal },
      )) {
        if (event.case === 'route' && event.value.route !== undefined)
          ranked.push({ rank: event.value.rank, route: event.value.route })
        if (event.case === 'unavailable') missing.push(event.value)
        if (event.case === 'answer') {
          const { routes, unavailable, warnings, degraded } = event.value
          setFound({ routes, unavailable, warnings, isComplete: true, isDegraded: degraded })
          timer = setTimeout(() => setRound((before) => before + 1), refreshInMs(routes))
        } else if (round === 0) {
          // Later rounds keep what is shown until they are complete, so that nothing jumps.
          const routes = ranked.toSorted((left, right) => left.rank - right.rank).map(({ route }) => route)
          setFound((before) => ({ ...before, routes, unavailable: [...missing] }))
        }
      }
    }
    read().catch((error: unknown) => {
      if (left.signal.aborted) return
      setFound((before) => ({ ...before, isComplete: true, error: error as Error }))
    })
    return () => {
      left.abort()
      clearTimeout(timer)
    }
  }, [checkout, paymentReference, wallet, round])
  return { ...found, refresh: () => setRound((before) => before + 1) }
}

function refreshInMs(routes: readonly Route[]): number {
  const ends = routes.flatMap(({ expiresAt = [] }) => (Array.isArray(expiresAt) ? [] : [toDate(expiresAt).getTime()]))
  return Math.max(LEAST_MS, Math.min(60_000, Math.min(...ends) - Date.now()))
}
