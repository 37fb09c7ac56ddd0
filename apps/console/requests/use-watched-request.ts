import { useQueryClient } from '@tanstack/react-query'
import { WaybillCallError } from '@waybill/client'
import { useEffect, useState } from 'react'
import { useWaybill } from '../parts/signed-in.tsx'
import { useVisible } from '../parts/visibility.ts'

/**
 * Keeps a request current while the page can be seen. The watch begins anew when somebody comes back, with the state of that moment, so nothing
 * waits for a connection that was cut meanwhile.
 *
 * @param isThere - the request exists
 * @returns whether the connection is being opened again
 */
export function useWatchedRequest(paymentReference: string, isThere: boolean): { readonly isCut: boolean } {
  const waybill = useWaybill()
  const queries = useQueryClient()
  const isVisible = useVisible()
  const [isCut, setCut] = useState(false)
  useEffect(() => {
    if (!isThere || !isVisible) return
    const left = new AbortController()
    const watch = async () => {
      const options = { signal: left.signal, onReconnect: () => setCut(true) }
      for await (const request of waybill.watchPaymentRequest(paymentReference, options)) {
        setCut(false)
        queries.setQueryData(['request', paymentReference], request)
      }
    }
    watch().catch((error: unknown) => {
      if (!left.signal.aborted && error instanceof WaybillCallError) setCut(true)
    })
    return () => left.abort()
  }, [waybill, queries, paymentReference, isThere, isVisible])
  return { isCut }
}
