import type { Account } from '../domain/account.ts'
import type { RequestStatus } from '../domain/payment-request.ts'
import { requestStatuses } from '../domain/payment-request.ts'
import { openCursor, sealCursor } from '../domain/sealed-cursor.ts'
import { waybillError } from '../errors.ts'
import type { RequestKey, RequestPage, RequestRepository, RequestWithBalance } from './request-repository.ts'

const DEFAULT_LIMIT = 20
const HIGHEST_LIMIT = 100

/** What a caller asks for; absent is not given. */
export interface ListInput {
  readonly statuses: readonly RequestStatus[]
  readonly limit?: number | undefined
  readonly cursor?: string | undefined
}

/** A page of requests, newest first. */
export interface ListedRequests {
  readonly requests: readonly RequestWithBalance[]
  readonly limit: number
  readonly nextCursor?: string
  readonly prevCursor?: string
}

/** What a cursor carries. */
interface CursorPayload {
  /** Status filter, sorted. */
  readonly s: readonly RequestStatus[]
  readonly l: number
  readonly d: 'OLDER' | 'NEWER'
  /** Created at, in milliseconds. */
  readonly t: number
  /** Request id. */
  readonly i: string
}

/**
 * Lists an account's requests, newest first.
 *
 * @throws WaybillError INVALID_LIMIT, INVALID_CURSOR, CURSOR_MISMATCH
 */
export async function listRequests(
  options: { readonly repository: Pick<RequestRepository, 'list'>; readonly cursorSecret: Uint8Array },
  account: Account,
  input: ListInput,
  signal?: AbortSignal,
): Promise<ListedRequests> {
  const seal = { secret: options.cursorSecret, scope: `${account.name}/requests` }
  const carried = input.cursor === undefined ? undefined : readCursor(openCursor(seal, input.cursor))
  const page = pageOf(input, carried)
  const found = await options.repository.list(account, page, signal)
  const backward = carried?.d === 'NEWER'
  const more = found.length > page.limit
  const requests = found.slice(0, page.limit)
  if (backward) requests.reverse()

  const cursorAt = (at: RequestWithBalance | undefined, d: 'OLDER' | 'NEWER'): string | undefined => {
    if (at === undefined) return undefined
    const key = { t: at.request.createdAt.getTime(), i: at.request.requestId }
    return sealCursor(seal, { s: page.statuses, l: page.limit, d, ...key } satisfies CursorPayload)
  }
  // What lies on the side that the walk came from is there; on the other side the extra row tells.
  const nextCursor = backward || more ? cursorAt(requests.at(-1), 'OLDER') : undefined
  const prevCursor = (backward ? more : carried !== undefined) ? cursorAt(requests.at(0), 'NEWER') : undefined
  return {
    requests,
    limit: page.limit,
    ...(nextCursor !== undefined && { nextCursor }),
    ...(prevCursor !== undefined && { prevCursor }),
  }
}

function pageOf(input: ListInput, carried: CursorPayload | undefined): RequestPage {
  const given = requestStatuses.filter((status) => input.statuses.includes(status))
  if (carried !== undefined && given.length > 0 && given.join() !== carried.s.join()) {
    throw waybillError('CURSOR_MISMATCH', { field: 'status' })
  }
  const limit = parseLimit(input.limit ?? carried?.l)
  if (carried === undefined) return { statuses: given, limit }
  const key: RequestKey = { createdAt: new Date(carried.t), requestId: carried.i }
  return { statuses: carried.s, limit, from: { key, direction: carried.d } }
}

function parseLimit(limit: number | undefined): number {
  if (limit === undefined || limit === 0) return DEFAULT_LIMIT
  if (!Number.isInteger(limit) || limit < 0) throw waybillError('INVALID_LIMIT', { value: limit })
  return Math.min(limit, HIGHEST_LIMIT)
}

function readCursor(payload: unknown): CursorPayload {
  if (payload === undefined) {
    throw waybillError('INVALID_CURSOR', { detail: 'it was not made here for this account and list, or was changed' })
  }
  // It is authenticated, so it has the shape in which it was sealed.
  return payload as CursorPayload
}
