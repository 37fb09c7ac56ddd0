import { useQuery } from '@tanstack/react-query'
import { PaymentRequest_Status } from '@waybill/client'
import { stateTexts } from '../../look/texts.ts'
import { useSession } from '../parts/session.tsx'
import { sayMoney } from './say-verdict.ts'

export interface Suggestion {
  readonly value: string
  readonly says: string
}

const none: readonly Suggestion[] = []

/** Requests that still take a payment, newest first. None where the key may not list them. */
export function useOpenRequests(): readonly Suggestion[] {
  const { waybill } = useSession()
  const { data } = useQuery({
    queryKey: ['why', 'requests'],
    queryFn: async ({ signal }) => {
      const status = [PaymentRequest_Status.OPEN, PaymentRequest_Status.PARTIALLY_PAID]
      const { requests } = await waybill.listPaymentRequests({ status, limit: 50 }, { signal })
      return requests.map((request) => ({
        value: request.paymentReference,
        says: `${sayMoney(request.outstandingAmount, request.invoiceCurrency)} · ${stateTexts.request[PaymentRequest_Status[request.status] as keyof typeof stateTexts.request]}`,
      }))
    },
    staleTime: 30_000,
  })
  return data ?? none
}

/** The wallets of a demo. None elsewhere. */
export function useDemoWallets(): readonly Suggestion[] {
  const { isDemo } = useSession()
  const { data } = useQuery({
    queryKey: ['why', 'wallets'],
    queryFn: async ({ signal }) => {
      const answer = await fetch('/demo/wallets', { signal })
      return answer.ok ? readWallets(await answer.json()) : none
    },
    enabled: isDemo,
    staleTime: Number.POSITIVE_INFINITY,
  })
  return data ?? none
}

interface DemoWallet {
  readonly name: string
  readonly address: string
  readonly says: string
}

/** `{wallets: {name: {address, says}}}` as in demo.json, or a list of wallets with their names. */
function readWallets(body: unknown): readonly Suggestion[] {
  const wallets = (body as { wallets?: Record<string, Omit<DemoWallet, 'name'>> | readonly DemoWallet[] }).wallets ?? {}
  const list = Array.isArray(wallets) ? (wallets as readonly DemoWallet[]) : Object.values(wallets)
  return list.map(({ address, says }) => ({ value: address, says }))
}
