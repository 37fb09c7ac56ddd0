import { useMutation } from '@tanstack/react-query'
import { type RefObject, useEffect, useMemo, useRef, useState } from 'react'
import { formatAmount } from '../../shared/format-amount.ts'
import { dayIn } from '../../shared/format-time.ts'
import { paymentsTexts } from '../../shared/texts.ts'
import { Paging } from '../parts/blocks.tsx'
import { Button } from '../parts/fields.tsx'
import { Link } from '../parts/link.tsx'
import { currentQuery, isReturn, navigate, placeOf, rememberPlace, searchOf, useLocation } from '../parts/location.ts'
import { Answer, Empty } from '../parts/notices.tsx'
import { Page } from '../parts/page.tsx'
import { useWaybill } from '../parts/signed-in.tsx'
import { FilterBox } from './filter-box.tsx'
import { filtersOf, searchFilters, withoutFilters, withoutOrder } from './filters.ts'
import { PaymentsTable } from './payments-table.tsx'
import { SumsCard } from './sums-card.tsx'
import { type Connection, usePayments } from './use-payments.ts'

const show = (query: URLSearchParams) => navigate(`/payments${searchOf(query)}`)
const change = (make: (before: URLSearchParams) => URLSearchParams) => show(make(currentQuery()))

/** The payments of the account: found, summed, followed. */
export function PaymentsPage() {
  const { query } = useLocation()
  const unordered = useUnordered(query)
  const [isPaused, setPaused] = useState(false)
  useEffect(() => rememberPlace('payments', `/payments${searchOf(query)}`), [query])
  return (
    <Page title={paymentsTexts.title} actions={<ExportView query={query} />}>
      <div className="stack">
        <FilterBox query={unordered} onChange={change} />
        <SumsCard query={unordered} isPaused={isPaused} onChange={change} />
        <List query={query} onPause={setPaused} />
      </div>
    </Page>
  )
}

/** The same object while rows are only sorted or turned over, so that nothing but the rows is shown again. */
function useUnordered(query: URLSearchParams): URLSearchParams {
  const text = withoutOrder(query).toString()
  return useMemo(() => new URLSearchParams(text), [text])
}

interface ListProps {
  readonly query: URLSearchParams
  /** Is called with true while a person holds the rows, so that what stands above them does not move them. */
  readonly onPause: (isPaused: boolean) => void
}

function List({ query, onPause }: ListProps) {
  const area = useRef<HTMLDivElement>(null)
  const [isStopped, setStopped] = useState(false)
  const isHeld = useHold(area)
  const isPaused = isStopped || isHeld
  const { page, connection, isTail, resume } = usePayments(query, isPaused)
  useEffect(() => {
    onPause(isPaused)
    if (!isPaused) resume()
  }, [isPaused])
  return (
    <Answer query={page} lines={12}>
      {({ live, pagination }) => (
        <section ref={area} aria-label={paymentsTexts.title} aria-busy={page.isPlaceholderData}>
          <TailLine
            {...{ connection, isTail, isPaused }}
            held={live.heldCount}
            onToggle={() => setStopped(!isStopped)}
            onShow={() => {
              getSelection()?.removeAllRanges()
              setStopped(false)
              resume()
              window.scrollTo({ top: 0 })
            }}
          />
          {live.rows.length === 0 ? (
            <Nothing query={query} />
          ) : (
            <PaymentsTable rows={live.rows} gone={live.gone} query={query} onSort={show} />
          )}
          <Paging pagination={pagination} />
        </section>
      )}
    </Answer>
  )
}

interface TailLineProps {
  readonly connection: Connection
  readonly isTail: boolean
  readonly isPaused: boolean
  readonly held: number
  readonly onToggle: () => void
  readonly onShow: () => void
}

/** Says whether new payments come in, and how many wait. Its height never changes. */
function TailLine({ connection, isTail, isPaused, held, onToggle, onShow }: TailLineProps) {
  const { tail } = paymentsTexts
  const word = connection === 'lost' ? tail.lost : !isTail ? tail.still : isPaused ? tail.paused(held) : tail.live
  return (
    <div className={isTail && !isPaused && connection === 'live' ? 'live tail row is-live good' : 'live tail row'}>
      <span className="quiet small" role="status">
        {word}
      </span>
      {isTail && held > 0 && <Button text={tail.show} kind="plain small" onClick={onShow} />}
      {isTail && held === 0 && (
        <Button
          text={isPaused ? tail.goOn : tail.pause}
          kind="plain small"
          aria-pressed={isPaused}
          onClick={onToggle}
        />
      )}
    </div>
  )
}

function Nothing({ query }: { query: URLSearchParams }) {
  const { nothing, clear } = paymentsTexts
  const isFiltered = filtersOf(query).length > 0
  // An order that nobody has paid has a request, and no payment. Elsewhere letters count in any case.
  const sought = query.get('referencePrefix') ?? query.get('reference') ?? query.get('q')
  return (
    <Empty title={isFiltered ? nothing.found : nothing.yet}>
      <p>{isFiltered ? nothing.widen : nothing.begin}</p>
      {sought !== null && (
        <>
          <Link to={placeOf('/requests', { q: sought })}>{nothing.requests(sought)}</Link>
          {!query.has('q') && <Link to={placeOf('/payments', { q: sought })}>{nothing.everywhere(sought)}</Link>}
        </>
      )}
      {isFiltered && <Link to={`/payments${searchOf(withoutFilters(query))}`}>{clear}</Link>}
    </Empty>
  )
}

/**
 * Whether a person is busy with what stands in an area: text in it is selected, its rows have the focus, or it is scrolled away from its top.
 * New rows would then move what they read.
 */
function useHold(area: RefObject<HTMLElement | null>): boolean {
  // Who comes back finds the rows as they were, until the page is scrolled to where it was.
  const [isHeld, setHeld] = useState(isReturn)
  useEffect(() => {
    const read = () => {
      const element = area.current
      setHeld(element !== null && (hasSelection(element) || hasFocusedRow(element) || isScrolledPast(element)))
    }
    const left = new AbortController()
    for (const event of ['selectionchange', 'focusin', 'focusout', 'scroll'])
      document.addEventListener(event, read, { passive: true, signal: left.signal })
    const timer = setTimeout(read, RETURN_MS)
    return () => {
      clearTimeout(timer)
      left.abort()
    }
  }, [area])
  return isHeld
}

const RETURN_MS = 300

function hasSelection(element: HTMLElement): boolean {
  const selection = getSelection()
  return (
    selection !== null &&
    !selection.isCollapsed &&
    selection.anchorNode !== null &&
    element.contains(selection.anchorNode)
  )
}

function hasFocusedRow(element: HTMLElement): boolean {
  const focused = document.activeElement
  return focused?.closest('tbody') !== null && element.contains(focused)
}

/** Its first rows are above what can be seen. */
function isScrolledPast(element: HTMLElement): boolean {
  return element.getBoundingClientRect().top < 0
}

/** Saves the payments of the view as CSV, all pages of it. */
function ExportView({ query }: { query: URLSearchParams }) {
  const waybill = useWaybill()
  const [rows, setRows] = useState(0)
  const running = useRef<AbortController>(undefined)
  const { start, cancel, progress, done, name } = paymentsTexts.export
  const saving = useMutation({
    mutationFn: async () => {
      running.current = new AbortController()
      const parts: Uint8Array<ArrayBuffer>[] = []
      // The first line names the columns.
      let lines = -1
      for await (const part of waybill.exportCsv(searchFilters(query), { signal: running.current.signal })) {
        parts.push(part)
        for (const byte of part) if (byte === NEW_LINE) lines++
        setRows(lines)
      }
      save(new Blob(parts, { type: 'text/csv' }), `${name}-${dayIn(new Date())}.csv`)
    },
  })
  const shown = formatAmount(String(rows))
  return (
    <div className="row">
      <span className="small quiet" role="status">
        {saving.isPending && progress(shown)}
        {saving.isSuccess && done(shown)}
        {saving.isError && running.current?.signal.aborted !== true && (
          <span className="wrong">{saving.error.message}</span>
        )}
      </span>
      {saving.isPending ? (
        <Button text={cancel} onClick={() => running.current?.abort()} />
      ) : (
        <Button text={start} onClick={() => saving.mutate()} />
      )}
    </div>
  )
}

const NEW_LINE = 10

function save(file: Blob, name: string): void {
  const url = URL.createObjectURL(file)
  const link = Object.assign(document.createElement('a'), { href: url, download: name })
  link.click()
  setTimeout(() => URL.revokeObjectURL(url), 10_000)
}
