import { type Checkout, type PaymentRequest, WaybillCallError } from '@waybill/client/checkout'
import { useEffect, useState } from 'preact/hooks'
import { useAsking } from './refresh.ts'

export interface WatchedRequest {
  readonly request?: PaymentRequest
  /** Why there is none, or why it can no longer be followed. */
  readonly error?: Error
  /** Why it is not current: the service does not answer, or takes no more calls just now. Both are tried again. */
  readonly lag?: 'AWAY' | 'BUSY'
}

/** Until the page looks again whether the service is back. */
const AWAY_MS = 3_000
/** After a refusal that does not say when to come back. */
export const REFUSED_MS = 5_000

/** The request as it is, kept current. A page that comes back asks at once: its stream may have been cut while nobody looked. */
export function useRequest(checkout: Checkout, paymentReference: string): WatchedRequest {
  const [watched, setWatched] = useState<WatchedRequest>({})
  const askAgain = useAsking(
    (signal) => {
      let isCut = false
      // Another watch begins with the request as it is.
      const onReconnect = (error: WaybillCallError) => {
        isCut = true
        const isBusy = isRefusedForNow(error)
        // A page that is refused a stream reads the request every few seconds instead.
        setWatched((before) =>
          isBusy && before.request !== undefined ? before : { ...before, lag: isBusy ? 'BUSY' : 'AWAY' },
        )
        // A page that nobody looks at is kept current as well.
        const timer = setTimeout(askAgain, isBusy ? Math.max(error.retryAfterMs ?? 0, REFUSED_MS) : AWAY_MS)
        signal.addEventListener('abort', () => clearTimeout(timer))
        throw error
      }
      const follow = async () => {
        const watch = checkout.watchPaymentRequest(paymentReference, { signal, onReconnect })
        for await (const request of watch) setWatched({ request })
      }
      follow().catch((error: Error) => {
        if (!signal.aborted && !isCut) setWatched((before) => ({ ...before, error }))
      })
    },
    [checkout, paymentReference],
  )
  useEffect(() => {
    const left = new AbortController()
    const come = () => document.visibilityState === 'visible' && askAgain()
    document.addEventListener('visibilitychange', come, { signal: left.signal })
    addEventListener('online', come, { signal: left.signal })
    return () => left.abort()
  }, [])
  return watched
}

/** @returns the reason of the service's table; `NONE` for what is no answer of the service */
export const reasonOf = (error: Error) => (error instanceof WaybillCallError ? error.reason : 'NONE')

/** Whether the service takes no more calls of this page just now. The same call is taken later. */
export const isRefusedForNow = (error: Error): error is WaybillCallError =>
  error instanceof WaybillCallError && error.code === 'resource_exhausted'
