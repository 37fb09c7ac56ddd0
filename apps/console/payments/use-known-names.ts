import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { PaymentSummary_GroupBy } from '@waybill/client'
import { symbolOf } from '../../shared/format-amount.ts'
import { paymentsTexts, stateTexts } from '../../shared/texts.ts'
import { aside } from '../parts/away.tsx'
import { useWaybill } from '../parts/signed-in.tsx'
import type { KnownNames } from './suggest.ts'

/** The networks and currencies of the account's payments, whatever is filtered. Undefined until they have come. */
export function useKnownNames(isWanted: boolean): KnownNames | undefined {
  const waybill = useWaybill()
  const { NETWORK, CURRENCY } = PaymentSummary_GroupBy
  const { data, isError } = useQuery({
    queryKey: ['known-names'],
    meta: aside,
    enabled: isWanted,
    staleTime: 600_000,
    placeholderData: keepPreviousData,
    queryFn: async ({ signal }) => {
      const [networks, currencies] = await Promise.all([
        waybill.summarizePayments({ groupBy: [NETWORK], top: 100 }, { signal }),
        waybill.summarizePayments({ groupBy: [CURRENCY], top: 100 }, { signal }),
      ])
      return {
        network: networks.groups.flatMap(({ network = [] }) => network),
        currency: withSymbols(currencies.groups.flatMap(({ currency = [] }) => currency)),
      }
    },
  })
  // Without them there is less to complete with.
  return isError ? noNames : data && { ...noNames, ...data }
}

export const noNames: KnownNames = {
  status: Object.keys(stateTexts.payment),
  type: Object.keys(paymentsTexts.types),
  network: [],
  currency: [],
}

/** `USDC`, which is every `USDC-…`, before its ids. */
function withSymbols(ids: readonly string[]): string[] {
  return [...new Set([...ids.map(symbolOf), ...ids])]
}
