import { type KeyboardEvent, type PointerEvent, useId, useRef, useState } from 'react'
import { paymentsTexts } from '../../shared/texts.ts'
import {
  barText,
  dayText,
  nameText,
  periodText,
  seriesText,
  ticksFor,
  tickText,
  totalOf,
  totalText,
} from './chart-texts.ts'
import { lastDayOf } from './periods.ts'
import { type Bar, type ChartState, heightOf } from './sums.ts'

interface ChartProps {
  readonly state: ChartState
  readonly bars: readonly Bar[]
  readonly series: readonly string[]
  readonly colourOf: (name: string) => string
  /** Shows the payments of a period. */
  readonly onPeriod: (from: string, to: string) => void
}

const HEIGHT = 120
const WIDTH = 1000
const GAP = 0.2
/** A few bars do not fill the chart. */
const MAX_BAR = 60

/** Bars over time, each split into parts. The numbers of the bar that is pointed at, touched or chosen by key stand above and below them. */
export function Chart(props: ChartProps) {
  const { state, bars, series, colourOf } = props
  // By its day: a filter or the minutes may take other bars away meanwhile.
  const [chosenDay, setChosenDay] = useState<string>()
  const chosen = bars.findIndex(({ firstDay }) => firstDay === chosenDay)
  const active = bars[chosen]
  const parts = active?.parts ?? bars.flatMap((bar) => bar.parts)
  const ticks = ticksFor(Math.max(...bars.map((bar) => totalOf(bar, state)), 0), state.measure === 'count' ? 1 : 0.01)
  const [first, last] = [bars[0]?.firstDay, bars.at(-1)?.firstDay]
  return (
    <figure className="chart">
      <p className="chart-read small number">
        {first !== undefined && last !== undefined && (
          <>
            <strong>
              {active === undefined
                ? periodText(state.period, first, lastDayOf(state.period, last))
                : periodText(state.period, active.firstDay)}
            </strong>{' '}
            {totalText(parts)}
          </>
        )}
      </p>
      <div className="chart-plot">
        <ol className="chart-ticks number small quiet" aria-hidden="true">
          {ticks.map((tick) => (
            <li key={tick}>{tickText(tick, state.measure)}</li>
          ))}
        </ol>
        <BarArea
          {...props}
          ticks={ticks}
          chosen={active && chosen}
          onChoose={(index) => setChosenDay(index === undefined ? undefined : bars[index]?.firstDay)}
        />
      </div>
      <div className="chart-axis number small quiet row apart" aria-hidden="true">
        <span>{first !== undefined && dayText(first)}</span>
        <span>{last !== undefined && last !== first && dayText(last)}</span>
      </div>
      <ul className="legend small row">
        {series.map((name) => (
          <li key={name}>
            <span className="swatch" style={{ background: colourOf(name) }} aria-hidden="true" />
            {nameText(name, state)} <span className="number quiet">{seriesText(name, parts, state)}</span>
          </li>
        ))}
      </ul>
    </figure>
  )
}

interface AreaProps extends ChartProps {
  readonly ticks: readonly number[]
  readonly chosen: number | undefined
  readonly onChoose: (index: number | undefined) => void
}

/** One control for all bars, since a bar may be narrower than a finger: it is moved along them, and opens the one it stands on. */
function BarArea({ state, bars, series, colourOf, onPeriod, ticks, chosen, onChoose }: AreaProps) {
  const help = useId()
  /** A first touch shows numbers alone. */
  const isArmed = useRef(false)
  const highest = ticks.at(-1) ?? 1
  const width = WIDTH / Math.max(bars.length, 1)
  const at = chosen ?? bars.length - 1
  const open = () => {
    const bar = bars[at]
    if (bar !== undefined) onPeriod(bar.firstDay, lastDayOf(state.period, bar.firstDay))
  }
  const indexAt = ({ clientX, currentTarget }: PointerEvent) => {
    const { left, width: whole } = currentTarget.getBoundingClientRect()
    return Math.max(0, Math.min(bars.length - 1, Math.floor(((clientX - left) / whole) * bars.length)))
  }
  const onKeyDown = (event: KeyboardEvent) => {
    const next = nextIndex(event.key, at, bars.length)
    if (next !== undefined) onChoose(next)
    else if (event.key === 'Enter' || event.key === ' ') open()
    else return
    event.preventDefault()
  }
  if (bars.length === 0) return <div className="chart-area" />
  return (
    <div
      className="chart-area"
      role="slider"
      tabIndex={0}
      aria-label={paymentsTexts.chart.label}
      aria-valuemin={1}
      aria-valuemax={bars.length}
      aria-valuenow={at + 1}
      aria-valuetext={barText(bars[at]!, state, series)}
      aria-describedby={help}
      onKeyDown={onKeyDown}
      onFocus={() => onChoose(at)}
      onBlur={() => onChoose(undefined)}
      onPointerMove={(event) => onChoose(indexAt(event))}
      onPointerLeave={({ pointerType }) => pointerType === 'mouse' && onChoose(undefined)}
      onPointerDown={(event) => {
        isArmed.current = event.pointerType === 'mouse' || indexAt(event) === chosen
        onChoose(indexAt(event))
      }}
      onClick={() => isArmed.current && open()}
    >
      <span id={help} className="unseen">
        {paymentsTexts.chart.help}
      </span>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
        {ticks.map((tick) => {
          const y = HEIGHT * (1 - tick / highest)
          return <line key={tick} className="chart-line" x1={0} x2={WIDTH} y1={y} y2={y} />
        })}
        {bars.map((bar, index) => (
          <BarColumn
            key={bar.firstDay}
            x={index * width}
            scale={HEIGHT / highest}
            isChosen={index === chosen}
            {...{ bar, width, state, series, colourOf }}
          />
        ))}
      </svg>
    </div>
  )
}

function nextIndex(key: string, at: number, count: number): number | undefined {
  const next = { ArrowLeft: at - 1, ArrowDown: at - 1, ArrowRight: at + 1, ArrowUp: at + 1, Home: 0, End: count - 1 }[
    key
  ]
  return next === undefined ? undefined : Math.max(0, Math.min(count - 1, next))
}

interface BarProps extends Pick<ChartProps, 'state' | 'series' | 'colourOf'> {
  readonly bar: Bar
  readonly x: number
  readonly width: number
  /** Height of one of what is measured. */
  readonly scale: number
  readonly isChosen: boolean
}

function BarColumn({ bar, x, width, scale, isChosen, state, series, colourOf }: BarProps) {
  const barWidth = Math.min(width * (1 - GAP), MAX_BAR)
  let top = HEIGHT
  return (
    <g className={isChosen ? 'bar chosen' : 'bar'}>
      <rect className="bar-ground" x={x} y={0} width={width} height={HEIGHT} />
      {series.map((name) => {
        const parts = bar.parts.filter((part) => part.name === name)
        const height = parts.reduce((sum, part) => sum + heightOf(part, state.measure), 0) * scale
        top -= height
        return (
          <rect
            key={name}
            style={{ fill: colourOf(name) }}
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
