/** The lists of requests that people ask for, as the service filters them. */
import { PaymentRequest_Status as Status } from '@waybill/client'
import type { RequestState } from '../../shared/request-state.ts'
import { requestTexts } from '../../shared/texts.ts'

export type ViewName = 'ALL' | RequestState | 'OVERPAID'

/** Each has a text that says that it is empty. */
export const viewNames = Object.keys(requestTexts.list.none) as readonly ViewName[]

/** The filters of a view. */
export function filtersOfView(name: ViewName): { readonly status?: Status[]; readonly overpaid?: boolean } {
  if (name === 'ALL') return {}
  return name === 'OVERPAID' ? { overpaid: true } : { status: [Status[name]] }
}

/** The view that a link names; all requests where it names none that exists. */
export function viewNameOf(text: string | null): ViewName {
  return viewNames.find((name) => name === text?.toUpperCase()) ?? 'ALL'
}

/** The filters that a text stands for: a request id, a payee's address, or the merchant's own reference. */
export function readSearch(text: string): { requestId?: string[]; payee?: string[]; reference?: string[] } {
  const typed = text.trim()
  if (typed === '') return {}
  if (/^01[0-9a-f]{64}$/i.test(typed)) return { requestId: [typed] }
  if (/^0x[0-9a-f]{40}$/i.test(typed)) return { payee: [typed] }
  return { reference: [typed] }
}

/** @returns the payment reference that a text has the form of; it may be the merchant's own reference all the same */
export function readPaymentReference(text: string): string | undefined {
  const [, digits] = /^(?:0x)?([0-9a-f]{16})$/i.exec(text.trim()) ?? []
  return digits === undefined ? undefined : `0x${digits.toLowerCase()}`
}
