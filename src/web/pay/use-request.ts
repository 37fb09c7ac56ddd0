import { type Checkout, type PaymentRequest, WaybillCallError } from '@waybill/client/checkout'
import { useEffect, useState } from 'preact/hooks'

export interface WatchedRequest {
  readonly request?: PaymentRequest
  /** Why there is none, or why it can no longer be followed. */
  readonly error?: WaybillCallError
  /** Whether the service does not answer just now. */
  readonly isAway: boolean
}

/** The request as it is, kept current. A page that comes back asks at once: its stream may have been cut while nobody looked. */
export function useRequest(checkout: Checkout, paymentReference: string): WatchedRequest {
  const [watched, setWatched] = useState<WatchedRequest>({ isAway: false })
  const visit = useVisits()
  useEffect(() => {
    const left = new AbortController()
    const follow = async () => {
      const onReconnect = () => setWatched((before) => ({ ...before, isAway: true }))
      const changes = checkout.watchPaymentRequest(paymentReference, { signal: left.signal, onReconnect })
      for await (const request of changes) setWatched({ request, isAway: false })
    }
    follow().catch((error: unknown) => {
      if (!left.signal.aborted && error instanceof WaybillCallError) setWatched((before) => ({ ...before, error }))
    })
    return () => left.abort()
  }, [checkout, paymentReference, visit])
  return watched
}

/** How often the page has been come back to. */
function useVisits(): number {
  const [visits, setVisits] = useState(0)
  useEffect(() => {
    const count = () => document.visibilityState === 'visible' && setVisits((before) => before + 1)
    document.addEventListener('visibilitychange', count)
    addEventListener('online', count)
    return () => {
      document.removeEventListener('visibilitychange', count)
      removeEventListener('online', count)
    }
  }, [])
  return visits
}
