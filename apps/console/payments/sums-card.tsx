import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { type PaymentSummary, PaymentSummary_Measure as SumOf, type WatchFilter } from '@waybill/client'
import { memo, useMemo, useState } from 'react'
import { isAboveZero } from '../../shared/decimals.ts'
import { formatAmount, formatUsd } from '../../shared/format-amount.ts'
import { dayIn } from '../../shared/format-time.ts'
import { paymentsTexts } from '../../shared/texts.ts'
import { Table } from '../parts/blocks.tsx'
import { Button } from '../parts/fields.tsx'
import { useZone } from '../parts/hooks.ts'
import { Link } from '../parts/link.tsx'
import { placeOf, withParameters } from '../parts/location.ts'
import { Failure, hasFailed, Waiting } from '../parts/notices.tsx'
import { Amount } from '../parts/shown-values.tsx'
import { useWaybill } from '../parts/signed-in.tsx'
import { Chart } from './chart.tsx'
import { ChartControls, type ChartSetting, ChartTable } from './chart-table.tsx'
import { coloursOf } from './colours.ts'
import { searchFilters, withFilters } from './filters.ts'
import { choosePeriod } from './periods.ts'
import {
  barsOf,
  byNetwork,
  type ChartState,
  failedOf,
  groupsOf,
  isFailedOnly,
  MEASURES,
  mayHaveFailed,
  PERIODS,
  SPLITS,
  sumsByCurrency,
  withoutFailed,
} from './sums.ts'
import { useKnownNames } from './use-known-names.ts'
import { SUMS_MS } from './use-payments.ts'

const SUMS = [SumOf.AMOUNTS, SumOf.REFUNDS, SumOf.NET]

interface SumsCardProps {
  readonly query: URLSearchParams
  /** While it is true, the sums are not read again: a change of their height would move the rows below. */
  readonly isPaused: boolean
  /** Shows the query that is made of the one before. */
  readonly onChange: (make: (before: URLSearchParams) => URLSearchParams) => void
}

/** How much came in, in all and over time. Failed payments stand beside it, and in the chart only by status or alone. */
export const SumsCard = memo(function SumsCard({ query, isPaused, onChange }: SumsCardProps) {
  const zone = useZone()
  const state = chartStateOf(query, dayIn(new Date(), zone))
  const filter = useMemo(() => searchFilters(query), [query])
  const isFailed = isFailedOnly(filter)
  // The service leaves failed payments out of sums by itself, so one answer has the sums and the bars.
  const charted = isFailed || state.split === 'status' ? filter : withoutFailed(filter)
  const refetchInterval = isPaused ? false : SUMS_MS
  const summary = useSummary(charted, { sums: SUMS, groupBy: groupsOf(state), timeZone: zone }, { refetchInterval })
  const hasFailedBeside = !isFailed && mayHaveFailed(filter)
  const failedToo = useSummary(failedOf(filter), {}, { refetchInterval, enabled: hasFailedBeside })
  const known = useKnownNames(true)
  if (hasFailed(summary)) return <Failure query={summary} isBeside />
  const isReady = summary.data !== undefined && (state.split !== 'currency' || known !== undefined)
  const chart = {
    ...(isReady ? barsOf(summary.data, state) : { bars: [], series: [] }),
    state,
    onPeriod: (from: string, to: string) =>
      onChange((before) =>
        withFilters(before, [
          { field: 'from', value: from },
          { field: 'to', value: to },
        ]),
      ),
  }
  const colourOf = coloursOf(state.split, state.split === 'status' ? [] : (known?.[state.split] ?? []))
  const changeChart = (name: ChartSetting, value: string) =>
    onChange((before) => withParameters(before, { [name]: value }))
  return (
    <section className="card sums-card stack" aria-label={paymentsTexts.chart.label}>
      {summary.data === undefined || failedToo.isLoading ? (
        <Waiting lines={5} />
      ) : (
        <Totals
          summary={summary.data}
          isFailed={isFailed}
          failed={hasFailedBeside ? failedToo.data : undefined}
          query={query}
        />
      )}
      {(!isReady || chart.bars.length > 0) && (
        <div className="stack gap-2">
          <ChartControls state={state} onChange={changeChart} />
          <Chart {...chart} colourOf={colourOf} />
          <ChartTable {...chart} />
        </div>
      )}
    </section>
  )
})

type SummaryQuestion = Pick<
  Parameters<ReturnType<typeof useWaybill>['summarizePayments']>[0],
  'groupBy' | 'sums' | 'timeZone'
>

interface Reading {
  readonly refetchInterval: number | false
  readonly enabled?: boolean
}

/** Sums of a filter, read again while the page can be seen. */
function useSummary(filter: WatchFilter, question: SummaryQuestion, reading: Reading) {
  const waybill = useWaybill()
  const asked = { ...filter, ...question }
  return useQuery({
    queryKey: ['sums', asked],
    queryFn: ({ signal }) => waybill.summarizePayments(asked, { signal }),
    placeholderData: keepPreviousData,
    ...reading,
  })
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

interface TotalsProps {
  readonly summary: PaymentSummary
  readonly isFailed: boolean
  /** The failed payments beside them. */
  readonly failed: PaymentSummary | undefined
  readonly query: URLSearchParams
}

function Totals({ summary, isFailed, failed, query }: TotalsProps) {
  const { sums: texts, count: say, withoutUsd } = paymentsTexts
  const { count, currencies } = sumsByCurrency(summary)
  return (
    <div className="stack gap-2">
      <p className="totals row gap-wide">
        <strong className="total number">{isFailed ? texts.failedCount(count) : say(count)}</strong>
        <span className="number" title={`${formatAmount(summary.amountInUsd)} USD`}>
          <span className="total">{formatUsd(summary.amountInUsd)}</span> {!isFailed && texts.gross}
        </span>
        {summary.countWithoutUsd > 0 && <span className="quiet small">{withoutUsd(summary.countWithoutUsd)}</span>}
      </p>
      {currencies.length > 0 && <CurrencyTable summary={summary} isFailed={isFailed} />}
      {failed !== undefined && failed.count > 0 && <Failed summary={failed} query={query} />}
    </div>
  )
}

const FEW_CURRENCIES = 4

/** The same numbers as `sums` of the API. */
function CurrencyTable({ summary, isFailed }: { summary: PaymentSummary; isFailed: boolean }) {
  const { sums: texts, more, fewer } = paymentsTexts
  const [isWhole, setWhole] = useState(false)
  const [isByNetwork, setByNetwork] = useState(false)
  const { currencies } = sumsByCurrency(isByNetwork ? byNetwork(summary) : summary)
  const rest = currencies.length - FEW_CURRENCIES
  const columns = isFailed ? ([['gross', texts.failed]] as const) : texts.columns
  const rows = currencies.slice(0, isWhole || isByNetwork ? undefined : FEW_CURRENCIES).map((sums) => [
    sums.symbol,
    ...columns.map(([name]) => (
      <span className={isAboveZero(sums[name]) ? name : `${name} quiet`}>
        <Amount value={sums[name]} currency={sums.symbol} decimals={2} bare />
      </span>
    )),
  ])
  return (
    <>
      <Table
        label={texts.title}
        columns={[texts.currency, ...columns.map(([, title]) => title)]}
        rows={rows}
        numbers={[1, 3]}
        name={0}
        className="cards sums-table"
      />
      <div className="row gap-wide">
        {rest > 0 && !isByNetwork && (
          <Button
            text={isWhole ? fewer : more(rest)}
            kind="plain small"
            aria-expanded={isWhole}
            onClick={() => setWhole(!isWhole)}
          />
        )}
        <Button
          text={isByNetwork ? texts.byCurrency : texts.byNetwork}
          kind="plain small"
          onClick={() => setByNetwork(!isByNetwork)}
        />
      </div>
    </>
  )
}

/** Failed payments of the filter, which moved no money: a link to them. */
function Failed({ summary: { count, amountInUsd }, query }: { summary: PaymentSummary; query: URLSearchParams }) {
  return (
    <Link to={placeOf('/payments', { status: 'FAILED' }, query)} className="wrong">
      {paymentsTexts.sums.besides(count, formatUsd(amountInUsd))}
    </Link>
  )
}
