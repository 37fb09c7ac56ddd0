import { keepPreviousData, useMutation, useQuery } from '@tanstack/react-query'
import { type PaymentSummary, PaymentSummary_Measure, type WatchFilter, type Waybill } from '@waybill/client'
import { memo, type RefObject, useEffect, useMemo, useRef, useState } from 'react'
import { formatAmount, formatUsd } from '../../shared/format-amount.ts'
import { dayIn } from '../../shared/format-time.ts'
import { paymentsTexts } from '../../shared/texts.ts'
import { Paging } from '../parts/blocks.tsx'
import { Button } from '../parts/fields.tsx'
import { useZone } from '../parts/hooks.ts'
import { Link } from '../parts/link.tsx'
import { currentQuery, navigate, rememberPlace, searchOf, useLocation, withParameter } from '../parts/location.ts'
import { Empty, ErrorNotice, Waiting } from '../parts/notices.tsx'
import { Page } from '../parts/page.tsx'
import { missingScope } from '../parts/scope-notice.tsx'
import { Amount } from '../parts/shown-values.tsx'
import { useWaybill } from '../parts/signed-in.tsx'
import { Chart, ChartControls, type ChartSetting, ChartTable } from './chart.tsx'
import { FilterBox } from './filter-box.tsx'
import { filtersOf, searchFilters, withFilters, withoutFilters, withoutOrder } from './filters.ts'
import { PaymentsTable } from './payments-table.tsx'
import { choosePeriod } from './periods.ts'
import { barsOf, type ChartState, groupsOf, MEASURES, PERIODS, SPLITS } from './sums.ts'
import { type Connection, SUMS_MS, usePayments } from './use-payments.ts'

const show = (query: URLSearchParams) => navigate(`/payments${searchOf(query)}`)
const change = (make: (before: URLSearchParams) => URLSearchParams) => show(make(currentQuery()))

/** The payments of the account: found, summed, followed. */
export function PaymentsPage() {
  const { query } = useLocation()
  const unordered = useUnordered(query)
  useEffect(() => rememberPlace('payments', `/payments${searchOf(query)}`), [query])
  return (
    <Page title={paymentsTexts.title} actions={<ExportView query={query} />}>
      <div className="stack">
        <FilterBox query={unordered} onChange={change} />
        <Sums query={unordered} />
        <List query={query} />
      </div>
    </Page>
  )
}

/** The same object while rows are only sorted or turned over, so that nothing but the rows is shown again. */
function useUnordered(query: URLSearchParams): URLSearchParams {
  const text = withoutOrder(query).toString()
  return useMemo(() => new URLSearchParams(text), [text])
}

function List({ query }: { query: URLSearchParams }) {
  const area = useRef<HTMLDivElement>(null)
  const [isStopped, setStopped] = useState(false)
  const isHeld = useHold(area)
  const isPaused = isStopped || isHeld
  const { page, live, connection, isTail, resume } = usePayments(query, isPaused)
  useEffect(() => {
    if (!isPaused) resume()
  }, [isPaused])
  if (page.error !== null) return <ErrorNotice error={page.error} onRetry={() => void page.refetch()} />
  if (page.data === undefined) return <Waiting lines={12} />
  return (
    <section ref={area} aria-label={paymentsTexts.title} aria-busy={page.isPlaceholderData}>
      <TailLine
        {...{ connection, isTail, isPaused }}
        held={live.heldCount}
        onToggle={() => setStopped(!isStopped)}
        onShow={() => {
          getSelection()?.removeAllRanges()
          setStopped(false)
          resume()
          area.current?.scrollIntoView({ block: 'nearest' })
          window.scrollTo({ top: 0 })
        }}
      />
      {live.rows.length === 0 ? (
        <Nothing query={query} />
      ) : (
        <PaymentsTable rows={live.rows} gone={live.gone} query={query} onSort={show} />
      )}
      <Paging
        pagination={page.data.pagination}
        placeOf={(cursor) => `/payments${searchOf(withParameter(query, 'cursor', cursor))}`}
      />
    </section>
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
    <div className={isTail && !isPaused && connection === 'live' ? 'tail row is-live good' : 'tail row'}>
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
  return (
    <Empty title={isFiltered ? nothing.found : nothing.yet}>
      <p>{isFiltered ? nothing.widen : nothing.begin}</p>
      {isFiltered && <Link to={`/payments${searchOf(withoutFilters(query))}`}>{clear}</Link>}
    </Empty>
  )
}

/** How much was paid, in all and over time. */
const Sums = memo(function Sums({ query }: { query: URLSearchParams }) {
  const waybill = useWaybill()
  const zone = useZone()
  const state = chartStateOf(query, dayIn(new Date(), zone))
  const filter = useMemo(() => searchFilters(query), [query])
  const groupBy = groupsOf(state)
  const summary = useQuery({
    queryKey: ['sums', filter, groupBy, zone],
    queryFn: ({ signal }) =>
      waybill.summarizePayments(
        { ...filter, groupBy, timeZone: zone, sums: [PaymentSummary_Measure.AMOUNTS] },
        { signal },
      ),
    placeholderData: keepPreviousData,
    // While the page can be seen.
    refetchInterval: SUMS_MS,
  })
  // The list says it.
  if (missingScope(summary.error) !== undefined) return null
  if (summary.error !== null) return <ErrorNotice error={summary.error} onRetry={() => void summary.refetch()} />
  const chart = summary.data === undefined ? { bars: [], series: [] } : barsOf(summary.data, state)
  return (
    <section className="card stack gap-3" aria-label={paymentsTexts.chart.label}>
      <div className="sums-head stack gap-2">
        <Totals summary={summary.data} />
        <ChartControls state={state} onChange={changeChart} />
      </div>
      <Chart {...chart} state={state} onPeriod={showDays} />
      <ChartTable {...chart} state={state} onPeriod={showDays} />
    </section>
  )
})

function changeChart(name: ChartSetting, value: string): void {
  change((before) => withParameter(before, name, value))
}

function showDays(from: string, to: string): void {
  change((before) =>
    withFilters(before, [
      { field: 'from', value: from },
      { field: 'to', value: to },
    ]),
  )
}

function chartStateOf(query: URLSearchParams, today: string): ChartState {
  const one = <T extends string>(name: string, options: readonly T[], otherwise: T) =>
    options.find((option) => option === query.get(name)) ?? otherwise
  return {
    period: one('by', PERIODS, choosePeriod(query.get('from'), query.get('to'), today)),
    split: one('split', SPLITS, 'network'),
    measure: one('measure', MEASURES, 'usd'),
  }
}

const MAX_SUMS = 4

function Totals({ summary }: { summary: PaymentSummary | undefined }) {
  const { count, withoutUsd, more } = paymentsTexts
  if (summary === undefined) return <Waiting />
  const sums = summary.sums.toSorted((left, right) => right.count - left.count)
  return (
    <div className="totals row">
      <strong className="total number">{count(summary.count, formatAmount(String(summary.count)))}</strong>
      <span className="total number" title={`${formatAmount(summary.amountInUsd)} USD`}>
        {formatUsd(summary.amountInUsd)}
      </span>
      {summary.countWithoutUsd > 0 && <span className="quiet small">{withoutUsd(summary.countWithoutUsd)}</span>}
      <span className="quiet small sums-list row">
        {sums.slice(0, MAX_SUMS).map(({ symbol, amount }) => (
          <Amount key={symbol} value={amount} currency={symbol} decimals={2} />
        ))}
        {sums.length > MAX_SUMS && <span>{more(sums.length - MAX_SUMS)}</span>}
      </span>
    </div>
  )
}

/**
 * Whether a person is busy with what stands in an area: text in it is selected, its rows have the focus, or it is scrolled away from its top.
 * New rows would then move what they read.
 */
function useHold(area: RefObject<HTMLElement | null>): boolean {
  const [isHeld, setHeld] = useState(false)
  useEffect(() => {
    const read = () => {
      const element = area.current
      setHeld(element !== null && (hasSelection(element) || hasFocusedRow(element) || isScrolledPast(element)))
    }
    const left = new AbortController()
    for (const event of ['selectionchange', 'focusin', 'focusout', 'scroll'])
      document.addEventListener(event, read, { passive: true, signal: left.signal })
    return () => left.abort()
  }, [area])
  return isHeld
}

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
      setRows(0)
      const file = await read(waybill, searchFilters(query), running.current.signal, setRows)
      save(new Blob(file.parts, { type: 'text/csv' }), `${name}-${dayIn(new Date())}.csv`)
      return file.rows
    },
  })
  const isCancelled = running.current?.signal.aborted === true
  return (
    <div className="row">
      <span className="small quiet" role="status">
        {saving.isPending && progress(formatAmount(String(rows)))}
        {saving.isSuccess && done(formatAmount(String(saving.data)))}
        {saving.isError && !isCancelled && <span className="wrong">{saving.error.message}</span>}
      </span>
      {saving.isPending ? (
        <Button text={cancel} onClick={() => running.current?.abort()} />
      ) : (
        <Button text={start} onClick={() => saving.mutate()} />
      )}
    </div>
  )
}

/** The pieces of the file, and how many payments stand in it. */
async function read(waybill: Waybill, filter: WatchFilter, signal: AbortSignal, onRows: (rows: number) => void) {
  const parts: Uint8Array<ArrayBuffer>[] = []
  // The first line names the columns.
  let rows = -1
  for await (const part of waybill.exportCsv(filter, { signal })) {
    parts.push(part)
    for (const byte of part) if (byte === NEW_LINE) rows++
    onRows(Math.max(rows, 0))
  }
  // The last line is empty.
  return { parts, rows: rows - 1 }
}

const NEW_LINE = 10

function save(file: Blob, name: string): void {
  const url = URL.createObjectURL(file)
  const link = Object.assign(document.createElement('a'), { href: url, download: name })
  link.click()
  setTimeout(() => URL.revokeObjectURL(url), 10_000)
}
