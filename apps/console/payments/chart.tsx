import { useState } from 'react'
import { formatAmount, formatUsd } from '../../shared/format-amount.ts'
import { formatDay } from '../../shared/format-time.ts'
import { paymentsTexts, stateTexts } from '../../shared/texts.ts'
import { Table } from '../parts/blocks.tsx'
import { addDecimals } from '../parts/decimals.ts'
import { Button, Choice } from '../parts/fields.tsx'
import { lastDayOf, type Period } from './periods.ts'
import { type Bar, type ChartState, heightOf, OTHER, seriesOf } from './sums.ts'

interface ChartProps {
  readonly state: ChartState
  readonly bars: readonly Bar[]
  readonly series: readonly string[]
  /** Shows the payments of a period. */
  readonly onPeriod: (from: string, to: string) => void
}

const HEIGHT = 120
const WIDTH = 1000
const GAP = 0.2
/** A few bars do not fill the chart. */
const MAX_BAR = 60

/** Bars over time, each split into parts, and the same as a table for those who cannot see or point. */
export function Chart({ state, bars, series, onPeriod }: ChartProps) {
  const most = Math.max(...bars.map((bar) => totalOf(bar, state)), 0)
  const width = WIDTH / Math.max(bars.length, 1)
  return (
    <figure className="chart">
      <svg
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={paymentsTexts.chart.label}
      >
        {bars.map((bar, index) => (
          <BarColumn
            key={bar.firstDay}
            bar={bar}
            x={index * width}
            width={width}
            most={most}
            {...{ state, series, onPeriod }}
          />
        ))}
      </svg>
      <div className="chart-axis number small quiet" aria-hidden="true">
        <span>{bars[0] !== undefined && dayText(bars[0].firstDay)}</span>
        <span>{paymentsTexts.chart.most(measureText(bars, state))}</span>
        <span>{bars.length > 1 && dayText(bars.at(-1)!.firstDay)}</span>
      </div>
      <ul className="legend small row">
        {series.map((name, index) => (
          <li key={name}>
            <span className="swatch" style={{ background: seriesColour(index) }} aria-hidden="true" />
            {nameText(name, state)}
          </li>
        ))}
      </ul>
    </figure>
  )
}

interface BarProps extends Omit<ChartProps, 'bars'> {
  readonly bar: Bar
  readonly x: number
  readonly width: number
  readonly most: number
}

function BarColumn({ bar, x, width, most, state, series, onPeriod }: BarProps) {
  const scale = most === 0 ? 0 : (HEIGHT - 4) / most
  const barWidth = Math.min(width * (1 - GAP), MAX_BAR)
  let top = HEIGHT
  const last = lastDayOf(state.period, bar.firstDay)
  return (
    <g className="bar" onClick={() => onPeriod(bar.firstDay, last)}>
      <title>{barText(bar, state)}</title>
      <rect className="bar-ground" x={x} y={0} width={width} height={HEIGHT} />
      {series.map((name, index) => {
        const parts = bar.parts.filter((part) => seriesOf(part.name, series) === name)
        const height = parts.reduce((sum, part) => sum + heightOf(part, state.measure), 0) * scale
        top -= height
        return (
          <rect
            key={name}
            fill={seriesColour(index)}
            x={x + (width - barWidth) / 2}
            y={top}
            width={barWidth}
            height={height}
          />
        )
      })}
    </g>
  )
}

const seriesColour = (index: number) => `var(--series-${index + 1})`

function totalOf({ parts }: Bar, { measure }: ChartState): number {
  return parts.reduce((sum, part) => sum + heightOf(part, measure), 0)
}

function barText({ firstDay, parts }: Bar, { period }: ChartState): string {
  return `${periodText(period, firstDay)}: ${paymentsTexts.count(countOf(parts))}, ${usdOf(parts)}`
}

function periodText(period: Period, firstDay: string): string {
  if (period === 'day') return dayText(firstDay)
  return `${dayText(firstDay)} – ${dayText(lastDayOf(period, firstDay))}`
}

/** A day is the same in every zone, so it is written as a moment of UTC. */
const dayText = (day: string) => formatDay(new Date(`${day}T00:00:00Z`), 'UTC')

function measureText(bars: readonly Bar[], state: ChartState): string {
  const highest = bars.toSorted((left, right) => totalOf(right, state) - totalOf(left, state))[0]
  return highest === undefined ? '' : partText(highest.parts, state)
}

function nameText(name: string, { split }: ChartState): string {
  if (name === OTHER) return paymentsTexts.chart.other
  return split === 'status' ? stateTexts.payment[name as keyof typeof stateTexts.payment] : name
}

/** The same figures in words, made when somebody opens them: they change with each payment. */
export function ChartTable(props: ChartProps) {
  const [isOpen, setOpen] = useState(false)
  return (
    <details className="chart-table" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary className="quiet">{paymentsTexts.chart.table}</summary>
      {isOpen && <BarsTable {...props} />}
    </details>
  )
}

/** A row for each period, which is a button that shows its payments. */
function BarsTable({ state, bars, series, onPeriod }: ChartProps) {
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
  return <Table label={chart.label} columns={columns} rows={rows} numbers={[1, columns.length]} />
}

const countOf = (parts: Bar['parts']) => parts.reduce((sum, { count }) => sum + count, 0)
const usdOf = (parts: Bar['parts']) => formatUsd(addDecimals(parts.map(({ usd }) => usd)))

function partText(parts: Bar['parts'], { measure }: ChartState): string {
  return measure === 'usd' ? usdOf(parts) : formatAmount(String(countOf(parts)))
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
