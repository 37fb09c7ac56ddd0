import { useQuery } from '@tanstack/react-query'
import { PaymentRequest_Status } from '@waybill/client'
import { stateTexts } from '../../shared/texts.ts'
import { useSession } from '../parts/signed-in.tsx'
import { sayMoney } from './say-verdict.ts'

const none: readonly never[] = []

/** Requests that still take a payment, newest first. None where the key may not list them. */
export function useOpenRequests() {
  const { waybill } = useSession()
  const { data } = useQuery({
    queryKey: ['why', 'requests'],
    queryFn: async ({ signal }) => {
      const status = [PaymentRequest_Status.OPEN, PaymentRequest_Status.PARTIALLY_PAID]
      const { requests } = await waybill.listPaymentRequests({ status, limit: 50 }, { signal })
      return requests.map(({ paymentReference, outstandingAmount, invoiceCurrency, status, reference }) => {
        const money = sayMoney(outstandingAmount, invoiceCurrency)
        const state = stateTexts.request[PaymentRequest_Status[status] as keyof typeof stateTexts.request]
        const says = [money, state, reference].filter((part) => part !== undefined).join(' · ')
        return { value: paymentReference, says, money, currency: invoiceCurrency }
      })
    },
    staleTime: 30_000,
  })
  return data ?? none
}

/** The wallets of a demo. None elsewhere. */
export function useDemoWallets() {
  const { isDemo } = useSession()
  const { data } = useQuery({
    queryKey: ['why', 'wallets'],
    queryFn: async ({ signal }) => {
      const answer = await fetch('/demo/wallets', { signal })
      if (!answer.ok) return none
      const wallets = (await answer.json()) as readonly { name: string; address: string; says: string }[]
      return wallets.map(({ name, address, says }) => ({ value: address, name, says }))
    },
    enabled: isDemo,
    staleTime: Number.POSITIVE_INFINITY,
  })
  return data ?? none
}
