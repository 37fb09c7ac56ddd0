import { paymentsTexts } from '../../shared/texts.ts'
import { Table } from '../parts/blocks.tsx'
import { Button, Choice } from '../parts/fields.tsx'
import { countOf, nameText, periodText, seriesText, usdOf } from './chart-texts.ts'
import { lastDayOf } from './periods.ts'
import type { Bar, ChartState } from './sums.ts'

interface ChartTableProps {
  readonly state: ChartState
  readonly bars: readonly Bar[]
  readonly series: readonly string[]
  /** Shows the payments of a period. */
  readonly onPeriod: (from: string, to: string) => void
}

/** The same figures in words: a row for each period, which is a button that shows its payments. */
export function ChartTable({ state, bars, series, onPeriod }: ChartTableProps) {
  const { chart, columns: titles, count } = paymentsTexts
  const columns = [chart.period, chart.payments, titles.usd, ...series.map((name) => nameText(name, state))]
  const rows = bars
    .toReversed()
    .map(({ firstDay, parts }) => [
      <Button
        text={periodText(state.period, firstDay)}
        kind="plain"
        onClick={() => onPeriod(firstDay, lastDayOf(state.period, firstDay))}
      />,
      count(countOf(parts)),
      usdOf(parts),
      ...series.map((name) => seriesText(name, parts, state)),
    ])
  return (
    <details className="chart-table">
      <summary className="quiet">{chart.table}</summary>
      <Table label={chart.label} columns={columns} rows={rows} numbers={[1, columns.length]} className="matrix" />
    </details>
  )
}

interface ControlsProps {
  readonly state: ChartState
  readonly onChange: (name: ChartSetting, value: string) => void
}

/** What of the chart is in the link. */
export type ChartSetting = 'by' | 'split' | 'measure'

export function ChartControls({ state, onChange }: ControlsProps) {
  const { chart } = paymentsTexts
  const choice = (name: ChartSetting, value: string, titles: Readonly<Record<string, string>>) => (
    <Choice
      isSmall
      label={chart[name]}
      value={value}
      options={Object.entries(titles)}
      onChoose={(chosen) => onChange(name, chosen)}
    />
  )
  return (
    <div className="chart-controls row">
      {choice('measure', state.measure, chart.measures)}
      {choice('by', state.period, chart.periods)}
      {choice('split', state.split, chart.splits)}
    </div>
  )
}
