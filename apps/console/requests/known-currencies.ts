import { useQuery } from '@tanstack/react-query'
import { PaymentSummary_GroupBy as GroupBy, type Waybill } from '@waybill/client'
import type { SuggestedValue } from '../parts/fields.tsx'
import { useWaybill } from '../parts/signed-in.tsx'

/** Currencies in which many shops write invoices. Others can be typed. */
const FIAT = 'USD EUR GBP CHF JPY CAD AUD NZD SGD HKD CNY INR KRW BRL MXN ZAR SEK NOK DKK PLN CZK'.split(' ')
/** Where an account has none of its own yet. */
const USUAL_TOKENS = ['USDC', 'USDT', 'DAI']

/** What the fields of a new request are completed with. */
export interface Completion {
  /** `USDC-BASE`, those of the account's own requests and payments first. */
  readonly paymentCurrencies: readonly string[]
  readonly payees: readonly string[]
}

/** Payment currencies and payees that the account has used, and usual tokens of the chains that are served. */
export function useCompletion(): Completion {
  const waybill = useWaybill()
  const { data } = useQuery({
    queryKey: ['completion'],
    queryFn: ({ signal }) => readCompletion(waybill, signal),
    staleTime: 60_000,
  })
  return data ?? { paymentCurrencies: [], payees: [] }
}

async function readCompletion(waybill: Waybill, signal: AbortSignal): Promise<Completion> {
  // Each needs a scope of its own; without it there is less to complete with.
  const [listed, paid, chains] = await Promise.all([
    waybill.listPaymentRequests({ limit: 100 }, { signal }).catch(() => undefined),
    waybill.summarizePayments({ groupBy: [GroupBy.CURRENCY] }, { signal }).catch(() => undefined),
    waybill.listChains({}, { signal }).catch(() => undefined),
  ])
  const requests = listed?.requests ?? []
  const used = [
    ...requests.map(({ paymentCurrency }) => paymentCurrency),
    ...(paid?.groups ?? []).flatMap(({ currency = [] }) => currency),
  ]
  const usual = (chains?.chains ?? []).flatMap(({ network }) => USUAL_TOKENS.map((symbol) => `${symbol}-${network}`))
  return {
    paymentCurrencies: [...new Set([...used.toSorted(), ...usual])],
    payees: [...new Set(requests.map(({ payee }) => payee))],
  }
}

/** The payment currency, then fiat by its name in the viewer's language. */
export function invoiceCurrencies(paymentCurrency: string): readonly SuggestedValue[] {
  const names = new Intl.DisplayNames(undefined, { type: 'currency' })
  const fiat = FIAT.map((code) => ({ value: code, says: names.of(code) ?? code }))
  return paymentCurrency === '' ? fiat : [{ value: paymentCurrency, says: '' }, ...fiat]
}
