import { type Checkout, type PaymentRequest, WaybillCallError } from '@waybill/client/checkout'
import { useEffect, useState } from 'preact/hooks'

export interface WatchedRequest {
  readonly request?: PaymentRequest
  /** Why there is none, or why it can no longer be followed. */
  readonly error?: Error
  /** Why it is not current: the service does not answer, or takes no more calls just now. Both are tried again. */
  readonly lag?: 'AWAY' | 'BUSY'
}

/** Between two checks whether the service is back. */
const CHECK_EVERY_MS = 3_000

/** The request as it is, kept current. A page that comes back asks at once: its stream may have been cut while nobody looked. */
export function useRequest(checkout: Checkout, paymentReference: string): WatchedRequest {
  const [watched, setWatched] = useState<WatchedRequest>({})
  const visit = useVisits()
  useEffect(() => {
    const left = new AbortController()
    const { signal } = left
    let timer: ReturnType<typeof setTimeout> | undefined
    const show = (request: PaymentRequest) => {
      clearTimeout(timer)
      timer = undefined
      setWatched({ request })
    }
    // A watch says nothing when it is back and nothing has changed.
    const check = () => {
      timer = setTimeout(() => {
        checkout.getPaymentRequest({ paymentReference }, { signal }).then(show, () => !signal.aborted && check())
      }, CHECK_EVERY_MS)
    }
    const onReconnect = (error: WaybillCallError) => {
      const isBusy = isRefusedForNow(error)
      // A page that is refused a stream reads the request every few seconds instead.
      setWatched((before) =>
        isBusy && before.request !== undefined ? before : { ...before, lag: isBusy ? 'BUSY' : 'AWAY' },
      )
      if (!isBusy && timer === undefined) check()
    }
    const follow = async () => {
      for await (const request of checkout.watchPaymentRequest(paymentReference, { signal, onReconnect })) show(request)
    }
    follow().catch((error: Error) => {
      if (!signal.aborted) setWatched((before) => ({ ...before, error }))
    })
    return () => {
      left.abort()
      clearTimeout(timer)
    }
  }, [checkout, paymentReference, visit])
  return watched
}

/** How often the page has been come back to. */
function useVisits(): number {
  const [visits, setVisits] = useState(0)
  useEffect(() => {
    const count = () => document.visibilityState === 'visible' && setVisits((before) => before + 1)
    const left = new AbortController()
    document.addEventListener('visibilitychange', count, { signal: left.signal })
    addEventListener('online', count, { signal: left.signal })
    return () => left.abort()
  }, [])
  return visits
}

/** @returns the reason of the service's table; `NONE` for what is no answer of the service */
export const reasonOf = (error: Error) => (error instanceof WaybillCallError ? error.reason : 'NONE')

/** Whether the service takes no more calls of this page just now. The same call is taken later. */
export const isRefusedForNow = (error: Error): error is WaybillCallError =>
  error instanceof WaybillCallError && error.code === 'resource_exhausted'
