/** A figure as a benchmark wrote it. */
export interface SeenFigure {
  readonly name: string
  readonly value: number
  readonly unit: string
  readonly target?: number
}

/** The values of a figure that are noise, and the day on which they were seen. */
export interface StoredRange {
  readonly low: number
  readonly high: number
  readonly date: string
}

export type StoredRanges = Readonly<Record<string, StoredRange>>

/** What a range is widened by at each end, as a share of the value, beside the spread of its runs. */
const MARGIN = 0.02

/** Times depend on the machine and on what else runs there, so only ratios, sizes and counts are compared. */
export function isTime({ unit }: SeenFigure): boolean {
  return /\b(ms|s)\b/.test(unit)
}

/**
 * The range of each figure that all runs have: its least and greatest value, wider at each end by the distance between them and 2 %. So a
 * figure that is the same in all runs may change by 2 %, and one that varies may be that far off again.
 */
export function rangesOf(runs: readonly (readonly SeenFigure[])[], date: string): StoredRanges {
  const byName = Map.groupBy(runs.flat(), ({ name }) => name)
  const inAll = [...byName].filter(([, figures]) => figures.length === runs.length && !figures.some(isTime))
  const rounded = (value: number) => Number(value.toPrecision(4))
  return Object.fromEntries(
    inAll.map(([name, figures]) => {
      const values = figures.map(({ value }) => value)
      const [least, greatest] = [Math.min(...values), Math.max(...values)]
      const margin = (value: number) => greatest - least + Math.abs(value) * MARGIN
      return [name, { low: rounded(least - margin(least)), high: rounded(greatest + margin(greatest)), date }]
    }),
  )
}

/** What lies outside its range or has none, and what is stored and was not measured. */
export function findDifferences(figures: readonly SeenFigure[], stored: StoredRanges) {
  const compared = new Map(figures.filter((figure) => !isTime(figure)).map(({ name, value }) => [name, value]))
  const names = new Set([...compared.keys(), ...Object.keys(stored)])
  return [...names].flatMap((name) => {
    const [seen, range] = [compared.get(name), stored[name]]
    if (seen !== undefined && range !== undefined && seen >= range.low && seen <= range.high) return []
    return [{ name, seen, low: range?.low, high: range?.high, date: range?.date }]
  })
}
