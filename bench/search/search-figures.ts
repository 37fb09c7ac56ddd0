import type { Figure } from '../report.ts'
import type { Times } from './measure-class.ts'
import type { ClassResult, MeasuredSearch } from './measure-search.ts'

/** The figures of a run, by the names under which targets were set. */
export function searchFigures({ classes, depth, heapBytes, indexBytes }: MeasuredSearch): Figure[] {
  const times = { unit: '× known' }
  return [
    ...classes.flatMap(({ name, alone, together }): Figure[] => [
      { name: `p50.${name}`, value: alone.all.p50 / alone.known.p50, ...times, target: { atMost: 5 } },
      { name: `p99.${name}`, value: alone.all.p99 / alone.known.p99, ...times, target: { atMost: 8 } },
      { name: `p50.8.${name}`, value: together.all.p50 / together.known.p50, ...times },
      { name: `p99.8.${name}`, value: together.all.p99 / together.known.p99, ...times },
    ]),
    { name: 'depth', value: depth, unit: '× first page', target: { atMost: 1.2 } },
    { name: 'indexes/heap', value: indexBytes / heapBytes, unit: '', target: { atMost: 2.3 } },
  ]
}

/** A line a class: milliseconds, and times those of known payments. */
export function searchTable({ classes }: MeasuredSearch): Record<string, object> {
  return Object.fromEntries(classes.map((each) => [each.name, tableLine(each)]))
}

function tableLine({ alone, together, plain }: ClassResult) {
  return {
    first: ms(alone.first.p50),
    later: ms(alone.deep.p50),
    p50: ms(alone.all.p50),
    p99: ms(alone.all.p99),
    '× p50': rounded(alone.all.p50 / alone.known.p50),
    '× p99': rounded(alone.all.p99 / alone.known.p99),
    '8 × p50': rounded(together.all.p50 / together.known.p50),
    '8 × p99': rounded(together.all.p99 / together.known.p99),
    ...(plain && { 'plain first': plainMs(plain.first), 'plain later': plainMs(plain.deep) }),
    ...(alone.all.queries < 1_000 && { queries: alone.all.queries }),
  }
}

function plainMs({ p50 }: Times): number | string {
  return p50 === Number.POSITIVE_INFINITY ? '> 10 s' : ms(p50)
}

const ms = (value: number) => Number(value.toPrecision(3))
const rounded = (value: number) => Number(value.toFixed(2))
