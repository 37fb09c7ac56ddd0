import { keepPreviousData, useQuery } from '@tanstack/react-query'
import type { WatchFilter, WatchPaymentsResponse, Waybill } from '@waybill/client'
import { useEffect, useEffectEvent, useMemo, useState } from 'react'
import { useWaybill } from '../parts/signed-in.tsx'
import { useVisible } from '../parts/visibility.ts'
import { searchFilters, searchOfPage, sortOf } from './filters.ts'
import { applyChanges, type FollowedPage, type LiveRows, liveRowsOf, resume, startRows } from './live-rows.ts'

const PAGE_SIZE = 50
/** Changes are shown together: an import brings thousands a second. */
const FLUSH_MS = 250
/** How often sums are read again while somebody sees them. */
export const SUMS_MS = 5_000

export type Connection = 'live' | 'lost' | 'off'

/** One page of payments, kept current by the watch. */
export function usePayments(query: URLSearchParams, isPaused: boolean) {
  const waybill = useWaybill()
  const address = query.toString()
  const search = useMemo(() => searchOfPage(new URLSearchParams(address), PAGE_SIZE), [address])
  const page = useQuery({
    queryKey: ['payments', search],
    queryFn: ({ signal }) => waybill.searchPayments(search, { signal }),
    placeholderData: keepPreviousData,
    // The watch keeps it current.
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
  })
  const isTail = isTailOf(query)
  const [followed, setFollowed] = useState<FollowedPage>({ answer: undefined, live: startRows([]) })
  const change = (make: (live: LiveRows) => LiveRows) =>
    setFollowed(({ answer, live }) => ({ answer, live: make(live) }))
  const connection = useChanges({
    waybill,
    filter: useMemo(() => searchFilters(new URLSearchParams(address)) as WatchFilter, [address]),
    from: page.isPlaceholderData ? undefined : page.data?.watchCursor,
    onChanges: (changes) => change((live) => applyChanges(live, changes, { isTail, isPaused })),
    onLost: () => void page.refetch(),
  })
  useEffect(() => {
    if (page.data !== undefined) setFollowed({ answer: page.data, live: startRows(page.data.payments) })
  }, [page.data])
  return { page, live: liveRowsOf(followed, page.data), connection, isTail, resume: () => change(resume) }
}

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
function useChanges({ waybill, filter, from, onChanges, onLost }: Changes): Connection {
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
  return connection
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
