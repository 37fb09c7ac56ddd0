/** The lists of requests that people ask for, and their pages. Some are what the service filters by; others are picked out of what it lists. */
import { PaymentRequest_Status as Status } from '@waybill/client'
import { type RequestState, type StatedRequest, statesOf } from './request-badges.tsx'

export type ViewName = 'ALL' | RequestState

export interface View {
  readonly status: readonly Status[]
  /** Which of what the service lists belongs here. Absent: all of it. */
  readonly picks?: (states: readonly RequestState[]) => boolean
  /** Few of what the service lists belong here, so larger pages are asked for. */
  readonly isSparse?: boolean
}

export const views: Readonly<Record<ViewName, View>> = {
  ALL: { status: [] },
  OPEN: { status: [Status.OPEN], picks: ([first]) => first === 'OPEN' },
  PARTIALLY_PAID: { status: [Status.PARTIALLY_PAID] },
  PENDING: { status: [Status.PENDING] },
  PAID: { status: [Status.PAID] },
  OVERPAID: { status: [Status.PAID], picks: (states) => states.includes('OVERPAID'), isSparse: true },
  EXPIRED: {
    status: [Status.OPEN, Status.PARTIALLY_PAID],
    picks: (states) => states.includes('EXPIRED'),
    isSparse: true,
  },
  CANCELLED: { status: [], picks: (states) => states.includes('CANCELLED'), isSparse: true },
  REFUNDED: { status: [Status.REFUNDED] },
}

export const viewNames = Object.keys(views) as readonly ViewName[]

/** The view that a link names; all requests where it names none that exists. */
export function viewNameOf(text: string | null): ViewName {
  return viewNames.find((name) => name === text?.toUpperCase()) ?? 'ALL'
}

/** The filters of a list that a text pasted bare stands for. */
export interface Asked {
  readonly requestId?: readonly string[]
  readonly payee?: readonly string[]
  readonly reference?: readonly string[]
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

export type Direction = 'older' | 'newer'

interface ListedPage<T> {
  readonly requests: readonly T[]
  readonly pagination?:
    | { readonly nextCursor?: string | undefined; readonly prevCursor?: string | undefined }
    | undefined
}

/** How one page is asked for: from the start, or from a cursor. */
export type ListPage<T> = (from: { readonly cursor: string } | { readonly limit: number }) => Promise<ListedPage<T>>

export interface GatheredPage<T> {
  readonly requests: readonly T[]
  readonly newer: string | undefined
  readonly older: string | undefined
  /** How many were looked at to find these. */
  readonly looked: number
  /** It ended at the bound, and more may follow that way. */
  readonly isCut: boolean
}

const ROWS = 20
const LARGEST_PAGE = 100
/** Beyond it a person decides whether to look on. */
const MAX_LOOKED = 2_000

/**
 * One page of a view: pages of the service one after the other, until enough of it belongs to the view.
 *
 * @returns the requests newest first, in whatever direction they were read
 */
export async function gatherPage<T extends StatedRequest>(
  list: ListPage<T>,
  { picks, isSparse = false }: View,
  { cursor, direction = 'older', now }: { cursor?: string | undefined; direction?: Direction; now: Date },
): Promise<GatheredPage<T>> {
  const belongs = (request: T) => picks === undefined || picks(statesOf(request, now))
  const pages: T[][] = []
  let from = cursor
  let looked = 0
  let newer: string | undefined
  let older: string | undefined
  do {
    const page = await list(from === undefined ? { limit: isSparse ? LARGEST_PAGE : ROWS } : { cursor: from })
    const { nextCursor, prevCursor } = page.pagination ?? {}
    if (pages.length === 0 || direction === 'newer') newer = prevCursor
    if (pages.length === 0 || direction === 'older') older = nextCursor
    const kept = page.requests.filter(belongs)
    if (direction === 'older') pages.push(kept)
    else pages.unshift(kept)
    looked += page.requests.length
    from = direction === 'older' ? older : newer
  } while (from !== undefined && looked < MAX_LOOKED && pages.flat().length < ROWS)
  return { requests: pages.flat(), newer, older, looked, isCut: from !== undefined && pages.flat().length < ROWS }
}
