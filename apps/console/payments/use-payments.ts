import { keepPreviousData, useQuery, useQueryClient } from '@tanstack/react-query'
import {
  type Payment,
  type WatchFilter,
  type WatchPaymentsResponse,
  WatchPaymentsResponse_Type,
  type Waybill,
} from '@waybill/client'
import { useEffect, useEffectEvent, useMemo, useState } from 'react'
import { watched } from '../parts/away.tsx'
import { useVisible } from '../parts/hooks.ts'
import { isReturn } from '../parts/location.ts'
import { useWaybill } from '../parts/signed-in.tsx'
import { searchFilters, searchOfPage, sortOf } from './filters.ts'

const PAGE_SIZE = 50
/** Changes are shown together: an import brings thousands a second. */
const FLUSH_MS = 250
/** How often sums are read again while somebody sees them. */
export const SUMS_MS = 5_000

export type Connection = 'live' | 'lost' | 'off'

/** One page of payments, kept current by the watch. */
export function usePayments(query: URLSearchParams, isPaused: boolean) {
  const waybill = useWaybill()
  const queries = useQueryClient()
  const address = query.toString()
  const search = useMemo(() => searchOfPage(new URLSearchParams(address), PAGE_SIZE), [address])
  const page = useQuery({
    queryKey: ['payments', search],
    queryFn: ({ signal }) => waybill.searchPayments(search, { signal }),
    placeholderData: keepPreviousData,
    // The watch keeps it current. Who comes back to it finds it as it was left.
    staleTime: () => (isReturn() ? Number.POSITIVE_INFINITY : 0),
    refetchOnWindowFocus: false,
    refetchOnReconnect: false,
    structuralSharing: false,
    meta: watched,
  })
  const isTail = isTailOf(query)
  const [followed, setFollowed] = useState<FollowedPage>({ answer: undefined, live: startRows([]) })
  const change = (make: (live: LiveRows) => LiveRows) =>
    setFollowed(({ answer, live }) => ({ answer, live: make(live) }))
  const { connection, position } = useChanges({
    waybill,
    filter: useMemo(() => searchFilters(new URLSearchParams(address)) as WatchFilter, [address]),
    from: page.isPlaceholderData ? undefined : page.data?.watchCursor,
    onChanges: (changes) => change((live) => applyChanges(live, changes, { isTail, isPaused })),
    onLost: () => void page.refetch(),
  })
  useEffect(() => {
    if (page.data !== undefined) setFollowed({ answer: page.data, live: leftRowsOf(page.data) })
  }, [page.data])
  const leave = useEffectEvent(() => {
    if (followed.answer !== page.data || page.data === undefined) return
    const left = { ...page.data, ...(position.at !== undefined && { watchCursor: position.at }) }
    leftRows.set(left, followed.live)
    queries.setQueryData(['payments', search], left)
  })
  useEffect(() => () => leave(), [])
  return { page, live: liveRowsOf(followed, page.data), connection, isTail, resume: () => change(resume) }
}

type Answer = { readonly payments: readonly Payment[] }

/** The rows of pages as they were left. */
const leftRows = new WeakMap<Answer, LiveRows>()
const leftRowsOf = (answer: Answer) => leftRows.get(answer) ?? startRows(answer.payments)

/** New payments come in at the top of the first page alone, and only where the newest are at the top. */
function isTailOf(query: URLSearchParams): boolean {
  const { by, order } = sortOf(query)
  return by === 'date' && order === 'desc' && !query.has('cursor')
}

interface Changes {
  readonly waybill: Waybill
  readonly filter: WatchFilter
  /** Where the page that is shown was read; undefined while there is none. */
  readonly from: string | undefined
  readonly onChanges: (changes: readonly WatchPaymentsResponse[]) => void
  /** Called when the changes since `from` can no longer be had: the page must be read again. */
  readonly onLost: () => void
}

/** Follows the changes of the payments that match while the page is visible, from where the page was read or where it stopped following. */
function useChanges({ waybill, filter, from, onChanges, onLost }: Changes) {
  const [connection, setConnection] = useState<Connection>('off')
  const isVisible = useVisible()
  const [position] = useState<{ from?: string | undefined; at?: string | undefined }>({})
  const flush = useEffectEvent(onChanges)
  const lose = useEffectEvent(onLost)
  useEffect(() => {
    if (from === undefined || !isVisible) return
    if (position.from !== from) Object.assign(position, { from, at: from })
    const left = new AbortController()
    const { signal } = left
    const batch = createBatch((changes) => flush(changes))
    const follow = async () => {
      const changes = waybill.watchPayments(filter, {
        from: position.at,
        signal,
        onReconnect: () => setConnection('lost'),
        onPosition(at) {
          position.at = at
          setConnection('live')
        },
      })
      for await (const each of changes) batch.add(each)
    }
    setConnection('live')
    follow().catch(() => {
      if (signal.aborted) return
      setConnection('off')
      lose()
    })
    return () => {
      left.abort()
      batch.end()
    }
  }, [waybill, filter, from, isVisible, position])
  return { connection, position }
}

/** Gathers changes for a moment. */
function createBatch(flush: (changes: readonly WatchPaymentsResponse[]) => void) {
  let held: WatchPaymentsResponse[] = []
  let timer: ReturnType<typeof setTimeout> | undefined
  const send = () => {
    timer = undefined
    const changes = held
    held = []
    flush(changes)
  }
  return {
    add(change: WatchPaymentsResponse) {
      held.push(change)
      timer ??= setTimeout(send, FLUSH_MS)
    },
    end() {
      if (timer === undefined) return
      clearTimeout(timer)
      send()
    },
  }
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

/** Rows that are followed, and the answer of the search that they began with. */
interface FollowedPage {
  readonly answer: Answer | undefined
  readonly live: LiveRows
}

/** The rows to show: as an answer has them until they are followed, then as they are, also when none is left. */
export function liveRowsOf({ answer, live }: FollowedPage, latest: FollowedPage['answer']): LiveRows {
  return latest === undefined || latest === answer ? live : leftRowsOf(latest)
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
