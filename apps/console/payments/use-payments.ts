import { keepPreviousData, useQuery, useQueryClient } from '@tanstack/react-query'
import {
  type Payment,
  type WatchFilter,
  type WatchPaymentsResponse,
  WatchPaymentsResponse_Type,
  type Waybill,
} from '@waybill/client'
import { useCallback, useEffect, useEffectEvent, useMemo, useState } from 'react'
import { paymentsTexts } from '../../shared/texts.ts'
import { watched } from '../parts/away.tsx'
import { useVisible } from '../parts/hooks.ts'
import { isReturn } from '../parts/location.ts'
import { useWaybill } from '../parts/signed-in.tsx'
import { findUnknownName, searchFilters, searchOfPage, sortOf } from './filters.ts'

const PAGE_SIZE = 50
/** Changes are shown together: an import brings thousands a second. */
const FLUSH_MS = 250
/** How often sums are read again while somebody sees them. */
export const SUMS_MS = 5_000

export type Connection = 'live' | 'lost' | 'off'

/** A page of payments, as it was read and has changed since. */
interface FollowedPage extends Pick<Awaited<ReturnType<Waybill['searchPayments']>>, 'pagination'> {
  readonly live: LiveRows
  /** Up to where its changes have been taken over. It moves on with each of them. */
  readonly position: { at?: string | undefined }
}

/** One page of payments, kept current by the watch. The query's own answer changes, so that who comes back finds it as it was left. */
export function usePayments(query: URLSearchParams, isPaused: boolean) {
  const waybill = useWaybill()
  const queries = useQueryClient()
  const address = query.toString()
  const { filter, search, queryKey, isTail } = useMemo(() => {
    const asked = new URLSearchParams(address)
    const search = searchOfPage(asked, PAGE_SIZE)
    const filter: WatchFilter = searchFilters(asked)
    return { filter, search, queryKey: ['payments', search], isTail: isTailOf(asked) }
  }, [address])
  const page = useQuery({
    queryKey,
    queryFn: async ({ signal }): Promise<FollowedPage> => {
      const unknown = findUnknownName(query)
      if (unknown !== undefined) throw new Error(paymentsTexts.unknownName(unknown))
      const { payments, pagination, watchCursor } = await waybill.searchPayments(search, { signal })
      return { pagination, live: startRows(payments), position: { at: watchCursor } }
    },
    placeholderData: keepPreviousData,
    // The watch keeps it current. Who comes back to it finds it as it was left.
    staleTime: () => (isReturn() ? Number.POSITIVE_INFINITY : 0),
    refetchOnWindowFocus: false,
    refetchOnReconnect: false,
    structuralSharing: false,
    meta: watched,
  })
  const { refetch } = page
  const position = page.isPlaceholderData ? undefined : page.data?.position
  const change = useCallback(
    (make: (live: LiveRows) => LiveRows) =>
      queries.setQueryData<FollowedPage>(queryKey, (before) => before && { ...before, live: make(before.live) }),
    [queries, queryKey],
  )
  const [connection, setConnection] = useState<Connection>('off')
  const isVisible = useVisible()
  const isHeld = useEffectEvent(() => isPaused)
  useEffect(() => {
    if (position?.at === undefined || !isVisible) return
    const left = new AbortController()
    const { signal } = left
    let held: WatchPaymentsResponse[] = []
    const flush = () => {
      const [changes, tail] = [held, { isTail, isPaused: isHeld() }]
      held = []
      if (changes.length > 0) change((live) => applyChanges(live, changes, tail))
    }
    const timer = setInterval(flush, FLUSH_MS)
    const follow = async () => {
      const onPosition = (at: string) => {
        position.at = at
        setConnection('live')
      }
      const options = { from: position.at, signal, onPosition, onReconnect: () => setConnection('lost') }
      for await (const each of waybill.watchPayments(filter, options)) held.push(each)
    }
    setConnection('live')
    // The changes since then can no longer be had: the page is read again.
    follow().catch(() => {
      if (signal.aborted) return
      setConnection('off')
      void refetch()
    })
    return () => {
      left.abort()
      clearInterval(timer)
      flush()
    }
  }, [waybill, filter, position, isVisible, change, isTail, refetch])
  return { page, connection, isTail, resume: () => void change(resume) }
}

/** New payments come in at the top of the first page alone, and only where the newest are at the top. */
function isTailOf(query: URLSearchParams): boolean {
  const { by, order } = sortOf(query)
  return by === 'date' && order === 'desc' && !query.has('cursor')
}

/** The rows of a page that stays current: decides what a change does to them. Nothing here asks the service. */
export interface LiveRows {
  readonly rows: readonly Payment[]
  /** Ids of rows whose payment no longer exists, or no longer matches. They keep their place, so that nothing jumps. */
  readonly gone: ReadonlySet<string>
  /** Payments that came while the tail was paused, newest first, as many as fit a page. */
  readonly held: readonly Payment[]
  /** How many came while the tail was paused, those included that are not held. */
  readonly heldCount: number
}

export const MAX_ROWS = 100

export function startRows(rows: readonly Payment[]): LiveRows {
  return { rows, gone: new Set(), held: [], heldCount: 0 }
}

interface TailState {
  /** Whether new payments may be shown at the top: the first page, newest first. */
  readonly isTail: boolean
  readonly isPaused: boolean
}

/** Takes over the changes of a moment, in order. */
export function applyChanges(before: LiveRows, changes: readonly WatchPaymentsResponse[], tail: TailState): LiveRows {
  return changes.reduce((state, change) => applyChange(state, change, tail), before)
}

function applyChange(state: LiveRows, { type, id, payment }: WatchPaymentsResponse, tail: TailState): LiveRows {
  if (type === WatchPaymentsResponse_Type.REMOVED && id !== undefined) return remove(state, id, tail)
  if (payment === undefined) return state
  if (state.rows.some((row) => row.id === payment.id)) return replace(state, payment)
  if (state.held.some((row) => row.id === payment.id)) {
    return { ...state, held: state.held.map((row) => (row.id === payment.id ? payment : row)) }
  }
  if (!tail.isTail || type !== WatchPaymentsResponse_Type.ADDED) return state
  if (!isAboveLast(payment, state.rows)) return state
  if (tail.isPaused) {
    return { ...state, held: place(payment, state.held).slice(0, MAX_ROWS), heldCount: state.heldCount + 1 }
  }
  return { ...state, rows: place(payment, state.rows).slice(0, MAX_ROWS) }
}

function replace(state: LiveRows, payment: Payment): LiveRows {
  const gone = state.gone.has(payment.id) ? new Set([...state.gone].filter((id) => id !== payment.id)) : state.gone
  return { ...state, gone, rows: state.rows.map((row) => (row.id === payment.id ? payment : row)) }
}

function remove(state: LiveRows, id: string, { isPaused }: TailState): LiveRows {
  const isHeld = state.held.some((row) => row.id === id)
  const held = isHeld ? state.held.filter((row) => row.id !== id) : state.held
  const heldCount = isHeld ? state.heldCount - 1 : state.heldCount
  if (!state.rows.some((row) => row.id === id)) return { ...state, held, heldCount }
  if (isPaused) return { ...state, held, heldCount, gone: new Set([...state.gone, id]) }
  return { ...state, held, heldCount, rows: state.rows.filter((row) => row.id !== id) }
}

/** Shows what was held. */
export function resume({ rows, gone, held }: LiveRows): LiveRows {
  const left = rows.filter(({ id }) => !gone.has(id))
  return startRows(held.reduceRight((before, payment) => place(payment, before), left).slice(0, MAX_ROWS))
}

/** An old payment, such as an imported one, belongs to a later page. */
function isAboveLast(payment: Payment, rows: readonly Payment[]): boolean {
  const last = rows.at(-1)
  return last === undefined || isNewer(payment, last)
}

function place(payment: Payment, rows: readonly Payment[]): Payment[] {
  const at = rows.findIndex((row) => isNewer(payment, row))
  return at < 0 ? [...rows, payment] : rows.toSpliced(at, 0, payment)
}

/** The order of the search: newest first, equal times by id. */
function isNewer(left: Payment, right: Payment): boolean {
  const [leftAt, rightAt] = [left.timestamp?.seconds ?? 0n, right.timestamp?.seconds ?? 0n]
  return leftAt === rightAt ? left.id > right.id : leftAt > rightAt
}
