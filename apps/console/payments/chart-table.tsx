import { useState } from 'react'
import { paymentsTexts } from '../../shared/texts.ts'
import { Table } from '../parts/blocks.tsx'
import { Button, Choice } from '../parts/fields.tsx'
import { countOf, nameText, partText, periodText, usdOf } from './chart-texts.ts'
import { lastDayOf } from './periods.ts'
import { type Bar, type ChartState, seriesOf } from './sums.ts'

interface ChartTableProps {
  readonly state: ChartState
  readonly bars: readonly Bar[]
  readonly series: readonly string[]
  /** Shows the payments of a period. */
  readonly onPeriod: (from: string, to: string) => void
}

/** The same figures in words, made when somebody opens them: they change with each payment. */
export function ChartTable(props: ChartTableProps) {
  const [isOpen, setOpen] = useState(false)
  return (
    <details className="chart-table" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary className="quiet">{paymentsTexts.chart.table}</summary>
      {isOpen && <BarsTable {...props} />}
    </details>
  )
}

/** A row for each period, which is a button that shows its payments. */
function BarsTable({ state, bars, series, onPeriod }: ChartTableProps) {
  const { chart, columns: titles, count } = paymentsTexts
  const columns = [chart.period, chart.payments, titles.usd, ...series.map((name) => nameText(name, state))]
  const rows = bars.toReversed().map(({ firstDay, parts }) => [
    <Button
      text={periodText(state.period, firstDay)}
      kind="plain"
      onClick={() => onPeriod(firstDay, lastDayOf(state.period, firstDay))}
    />,
    count(countOf(parts)),
    usdOf(parts),
    ...series.map((name) =>
      partText(
        parts.filter((part) => seriesOf(part.name, series) === name),
        state,
      ),
    ),
  ])
  return <Table label={chart.label} columns={columns} rows={rows} numbers={[1, columns.length]} className="matrix" />
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
