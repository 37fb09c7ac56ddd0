import type { Waybill } from '@waybill/client'

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

/**
 * The payment reference of the request that a text names by its payment reference, its id, or the merchant's own reference (of several the
 * newest); undefined if there is none. Without 0x, sixteen digits may be an order number.
 */
export async function findPaymentReference(waybill: Waybill, text: string): Promise<string | undefined> {
  const written = readPaymentReference(text)
  if (written !== undefined && /^0x/i.test(text)) return written
  const { requests } = await waybill.listPaymentRequests({ ...readSearch(text), limit: 1 })
  return requests[0]?.paymentReference ?? written
}
