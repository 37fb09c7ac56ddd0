/** The lists of requests that people ask for, as the service filters them. */
import { PaymentRequest_Status as Status } from '@waybill/client'
import type { RequestState } from '../../look/request-state.ts'

export type ViewName = 'ALL' | RequestState | 'OVERPAID'

/** Filters of a list. */
export interface View {
  readonly status?: Status[]
  readonly overpaid?: boolean
}

export const views: Readonly<Record<ViewName, View>> = {
  ALL: {},
  OPEN: { status: [Status.OPEN] },
  PARTIALLY_PAID: { status: [Status.PARTIALLY_PAID] },
  PENDING: { status: [Status.PENDING] },
  PAID: { status: [Status.PAID] },
  OVERPAID: { overpaid: true },
  EXPIRED: { status: [Status.EXPIRED] },
  CANCELLED: { status: [Status.CANCELLED] },
  REFUNDED: { status: [Status.REFUNDED] },
}

export const viewNames = Object.keys(views) as readonly ViewName[]

/** The view that a link names; all requests where it names none that exists. */
export function viewNameOf(text: string | null): ViewName {
  return viewNames.find((name) => name === text?.toUpperCase()) ?? 'ALL'
}

/** The filters of a list that a text pasted bare stands for. */
export interface Asked {
  readonly requestId?: string[]
  readonly payee?: string[]
  readonly reference?: string[]
}

/** @param text - a request id, a payee's address, or the merchant's own reference */
export function readSearch(text: string): Asked {
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
