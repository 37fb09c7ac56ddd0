import { type Figure, median } from '../report.ts'
import type { Growth, Times } from './measure-class.ts'
import type { MeasuredExport } from './measure-export.ts'
import type { IngestSpeed, MeasuredIngest } from './measure-ingest.ts'
import { type ClassResult, type MeasuredSearch, PLAIN_BUDGET_MS } from './measure-search.ts'

const TARGET = { p50: 5, p99: 8, growth: 1.3, plain: 1.2 }
/** A class is slower than plain SQL from this difference on, in ms; below it the ratio of two short times says little. */
const SLOWER_MS = 0.5

/** The figures of a run, by the names under which targets were set. */
export function searchFigures({ classes, depth, heapBytes, indexBytes }: MeasuredSearch): Figure[] {
  const times = { unit: '× known' }
  return [
    ...classes.flatMap(({ name, alone, together, growth, plain }): Figure[] => [
      { name: `p50.${name}`, value: alone.all.p50 / alone.known.p50, ...times, target: { atMost: TARGET.p50 } },
      { name: `p99.${name}`, value: alone.all.p99 / alone.known.p99, ...times, target: { atMost: TARGET.p99 } },
      ...(growth === undefined
        ? []
        : [
            { name: `growth.${name}`, value: growthOf(growth), unit: '× a million', target: { atMost: TARGET.growth } },
          ]),
      { name: `plain.${name}`, value: toPlain(plain), unit: '× plain SQL', target: { atMost: TARGET.plain } },
      { name: `p50.8.${name}`, value: together.all.p50 / together.known.p50, ...times },
      { name: `p99.8.${name}`, value: together.all.p99 / together.known.p99, ...times },
    ]),
    { name: 'plain.slower', value: slowerThanPlain(classes).length, unit: 'classes', target: { atMost: 20 } },
    {
      name: 'plain.median',
      value: median(classes.map(({ plain }) => toPlain(plain))),
      unit: '× plain SQL',
      target: { atMost: 1 },
    },
    {
      name: 'slowest',
      value: Math.max(...classes.map(({ alone }) => alone.all.p50)),
      unit: 'ms',
      target: { atMost: 25 },
    },
    { name: 'depth', value: depth, unit: '× first page', target: { atMost: 1.2 } },
    { name: 'indexes/heap', value: indexBytes / heapBytes, unit: '', target: { atMost: 1.5 } },
  ]
}

/** The figures of imports. */
export function ingestFigures({ added, unchanged }: MeasuredIngest): Figure[] {
  const figuresOf = (name: string, speed: IngestSpeed, atLeast: number, maxWalBytes?: number): Figure[] => [
    { name, value: speed.rowsPerSecond, unit: 'rows/s', target: { atLeast } },
    { name: `${name}.node`, value: speed.node, unit: 'CPU µs/row' },
    { name: `${name}.postgres`, value: speed.postgres, unit: 'CPU µs/row' },
    {
      name: `${name}.wal`,
      value: speed.walBytes,
      unit: 'bytes/row',
      ...(maxWalBytes !== undefined && { target: { atMost: maxWalBytes } }),
    },
  ]
  return [...figuresOf('ingest.new', added, 10_000, 12_000), ...figuresOf('ingest.unchanged', unchanged, 80_000)]
}

/** The figures of the export. */
export function exportFigures({ rows, rowsPerSecond, growthMib, driftMib }: MeasuredExport): Figure[] {
  return [
    { name: 'export.rows', value: rows, unit: 'rows' },
    { name: 'export.rows/s', value: rowsPerSecond, unit: 'rows/s' },
    { name: 'export.growth-mib', value: growthMib, unit: 'MiB' },
    { name: 'export.drift-mib', value: driftMib, unit: 'MiB', target: { atMost: 16 } },
  ]
}

/** A line for each class: milliseconds, and multiples of the time of known payments. */
export function searchTable({ classes }: MeasuredSearch): Record<string, object> {
  return Object.fromEntries(classes.map((each) => [each.name, tableLine(each)]))
}

/** The table of the documentation. Values that miss their targets are bold. */
export function markdownOf(classes: readonly ClassResult[]): string {
  const columns = [
    'class',
    '1 million',
    '10 million',
    '× p50',
    '× p99',
    '8: × p50',
    '8: × p99',
    'growth',
    '× plain',
    'plain: first, later',
  ]
  const line = (cells: readonly unknown[]) => `| ${cells.join(' | ')} |\n`
  return line(columns) + line(columns.map(() => '---')) + classes.map((each) => line(documentedLine(each))).join('')
}

function documentedLine({ name, alone, together, plain, growth }: ClassResult): unknown[] {
  const bold = (value: number, atMost: number) => (value > atMost ? `**${rounded(value)}**` : rounded(value))
  return [
    name,
    growth === undefined ? '' : ms(growth.few.p50),
    ms(alone.all.p50),
    bold(alone.all.p50 / alone.known.p50, TARGET.p50),
    bold(alone.all.p99 / alone.known.p99, TARGET.p99),
    rounded(together.all.p50 / together.known.p50),
    rounded(together.all.p99 / together.known.p99),
    growth === undefined ? '' : bold(growthOf(growth), TARGET.growth),
    isSlower(plain) ? `**${rounded(toPlain(plain))}**` : rounded(toPlain(plain)),
    `${plainMs(plain.first.plain)}, ${plainMs(plain.deep.plain)}`,
  ]
}

/** How many classes meet each target. */
export function metOf(classes: readonly ClassResult[]): string {
  const count = (isMet: (each: ClassResult) => boolean) => classes.filter(isMet).length
  const p50 = count(({ alone }) => alone.all.p50 / alone.known.p50 <= TARGET.p50)
  const p99 = count(({ alone }) => alone.all.p99 / alone.known.p99 <= TARGET.p99)
  const grown = count(({ growth }) => growth !== undefined && growthOf(growth) <= TARGET.growth)
  const hasGrowth = classes.some(({ growth }) => growth !== undefined)
  return [
    `of ${classes.length} classes × p50 is met by ${p50}, × p99 by ${p99}; plain SQL is faster in ${slowerThanPlain(classes).length}`,
    ...(hasGrowth ? [`growth by ${grown}`] : []),
  ].join(', ')
}

function tableLine({ alone, together, plain, growth }: ClassResult) {
  return {
    first: ms(alone.first.p50),
    later: ms(alone.deep.p50),
    p50: ms(alone.all.p50),
    p99: ms(alone.all.p99),
    '× p50': rounded(alone.all.p50 / alone.known.p50),
    '× p99': rounded(alone.all.p99 / alone.known.p99),
    '8 × p50': rounded(together.all.p50 / together.known.p50),
    '8 × p99': rounded(together.all.p99 / together.known.p99),
    ...(growth && { growth: rounded(growthOf(growth)), 'a million': ms(growth.few.p50) }),
    '× plain': rounded(toPlain(plain)),
    'plain first': plainMs(plain.first.plain),
    'plain later': plainMs(plain.deep.plain),
    queries: alone.all.queries,
  }
}

const slowerThanPlain = (classes: readonly ClassResult[]) => classes.filter(({ plain }) => isSlower(plain))

const isSlower = ({ first, deep }: ClassResult['plain']) =>
  [first, deep].some(({ ours, plain }) => ours.p50 > TARGET.plain * plain.p50 && ours.p50 - plain.p50 > SLOWER_MS)

/** How much slower than plain SQL the service is at worst, on first or on later pages; below 1 it is faster on both. */
function toPlain({ first, deep }: ClassResult['plain']): number {
  return Math.max(...[first, deep].map(({ ours, plain }) => ours.p50 / plain.p50))
}

const growthOf = ({ few, many }: Growth) => many.p50 / few.p50

function plainMs({ p50 }: Times): number | string {
  return p50 === Number.POSITIVE_INFINITY ? `> ${PLAIN_BUDGET_MS / 2_000} s` : ms(p50)
}

const ms = (value: number) => Number(value.toPrecision(3))
const rounded = (value: number) => Number(value.toFixed(2))
