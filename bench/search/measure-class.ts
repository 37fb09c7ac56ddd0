import type { Knex } from 'knex'
import { readPaymentColumns } from '../../src/store/payment-row.ts'
import { plainStatement } from './plain-sql.ts'
import { PAGE, type PreparedClass, type PreparedQuery } from './prepare-queries.ts'
import type { Subject } from './subject.ts'

/** How long searches took, in ms. */
export interface Times {
  readonly p50: number
  readonly p99: number
  readonly queries: number
}

/** Searches of a class, and known payments fetched between them. */
export interface MeasuredClass {
  readonly all: Times
  readonly first: Times
  readonly deep: Times
  readonly known: Times
}

export interface MeasureOptions {
  readonly subject: Subject
  /** Ids to fetch by, a page each. */
  readonly knownPages: readonly (readonly string[])[]
  readonly queries: number
  readonly connections: number
  /** After which no further search begins, in ms: a slow class is measured by fewer. */
  readonly budgetMs: number
}

/** Runs every search of a class once, so that what they read is in memory. */
export async function warm(subject: Subject, { first, deep }: PreparedClass, budgetMs: number): Promise<void> {
  const endsAtMs = performance.now() + budgetMs
  for (const { sent } of [...first, ...deep]) {
    if (performance.now() > endsAtMs) return
    await subject.search(sent)
  }
}

/**
 * Measures a class: first and later pages by turns, and after every other search a page of known payments, so that whatever else the
 * machine does hits both.
 */
export async function measureClass(
  { first, deep }: PreparedClass,
  { subject, knownPages, queries, connections, budgetMs }: MeasureOptions,
): Promise<MeasuredClass> {
  const times = { first: [] as number[], deep: [] as number[], known: [] as number[] }
  const endsAtMs = performance.now() + budgetMs
  let begun = 0
  const work = async () => {
    while (begun < queries && performance.now() < endsAtMs) {
      const nth = begun++
      const kind = nth % 2 === 0 ? 'first' : 'deep'
      const some = kind === 'first' ? first : deep
      const { sent } = some[(nth >> 1) % some.length] as PreparedQuery
      times[kind].push(await timed(() => subject.search(sent)))
      if (kind === 'deep') {
        const ids = knownPages[(nth >> 1) % knownPages.length] ?? []
        times.known.push(await timed(() => subject.fetchKnown(ids)))
      }
    }
  }
  await Promise.all(Array.from({ length: connections }, work))
  return {
    all: timesOf([...times.first, ...times.deep]),
    first: timesOf(times.first),
    deep: timesOf(times.deep),
    known: timesOf(times.known),
  }
}

/** A class among few payments and among many. */
export interface Growth {
  readonly few: Times
  readonly many: Times
}

/** Measures a class among few payments and among many by turns, first and later pages. */
export async function measureGrowth(
  few: { readonly subject: Subject; readonly prepared: PreparedClass },
  many: { readonly subject: Subject; readonly prepared: PreparedClass },
  { queries, budgetMs }: Pick<MeasureOptions, 'queries' | 'budgetMs'>,
): Promise<Growth> {
  const times = { few: [] as number[], many: [] as number[] }
  const endsAtMs = performance.now() + budgetMs
  const search = ({ subject, prepared }: typeof few, nth: number) => {
    const some = nth % 2 === 0 ? prepared.first : prepared.deep
    return timed(() => subject.search((some[(nth >> 1) % some.length] as PreparedQuery).sent))
  }
  for (let nth = 0; nth < queries && performance.now() < endsAtMs; nth++) {
    times.few.push(await search(few, nth))
    times.many.push(await search(many, nth))
  }
  return { few: timesOf(times.few), many: timesOf(times.many) }
}

/** The same searches in plain SQL, at most so many and for so long. @returns infinite times where none ended in time */
export async function measurePlain(
  knex: Knex,
  queries: readonly PreparedQuery[],
  { most, budgetMs }: { most: number; budgetMs: number },
): Promise<Times> {
  const times: number[] = []
  const endsAtMs = performance.now() + budgetMs
  // the first one of each warms
  const asked = [...queries.slice(0, 3), ...queries].slice(0, most)
  for (const { filter, input, position } of asked) {
    if (performance.now() > endsAtMs) break
    const { sortBy = 'date', sortOrder = 'desc' } = input
    const { sql, bindings } = plainStatement(
      { filter, sortBy, sortOrder, position, limit: PAGE + 1 },
      readPaymentColumns,
    )
    const ms = await timed(() => knex.raw(sql, bindings as Knex.RawBinding[])).catch(onTimeout)
    times.push(ms)
    if (ms === Number.POSITIVE_INFINITY) break
  }
  return timesOf(times.length > 3 ? times.slice(3) : times)
}

const STATEMENT_CANCELLED = '57014'

function onTimeout(error: unknown): number {
  if ((error as { code?: string }).code === STATEMENT_CANCELLED) return Number.POSITIVE_INFINITY
  throw error
}

/** @returns milliseconds */
export async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedMs = performance.now()
  await work()
  return performance.now() - startedMs
}

export function timesOf(times: readonly number[]): Times {
  const sorted = times.toSorted((a, b) => a - b)
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
  return { p50: at(0.5), p99: at(0.99), queries: times.length }
}
