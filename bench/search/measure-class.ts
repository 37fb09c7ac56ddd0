import type { Knex } from 'knex'
import type { Payment } from '../../src/domain/payment.ts'
import { runNamed } from '../../src/postgres/named-statements.ts'
import { raw } from '../../src/postgres/statement.ts'
import { NO_HEADS, paymentOfRow, readPaymentColumns } from '../../src/store/payment-row.ts'
import { type PlainWay, plainStatement, plainWays } from './plain-sql.ts'
import { PAGE, type PreparedClass } from './prepare-queries.ts'
import type { PreparedQuery, Subject } from './subject.ts'

/** How long searches took, in ms. */
export interface Times {
  readonly p50: number
  readonly p99: number
  readonly queries: number
}

/** Times of the searches of a class, and of fetching known payments between them. */
export interface MeasuredClass {
  readonly all: Times
  readonly first: Times
  readonly deep: Times
  readonly known: Times
}

export interface MeasureOptions {
  readonly subject: Subject
  /** Ids of known payments, a page each. */
  readonly knownPages: readonly (readonly string[])[]
  readonly queries: number
  readonly connections: number
  /** After which no further search begins, in ms: a slow class is measured by fewer. */
  readonly budgetMs: number
}

/** Runs every search of a class once, so that the pages that it reads are in memory. */
export async function warm(subject: Subject, { first, deep }: PreparedClass, budgetMs: number): Promise<void> {
  const endsAtMs = performance.now() + budgetMs
  for (const { sent } of [...first, ...deep]) {
    if (performance.now() > endsAtMs) return
    await subject.search(sent)
  }
}

/**
 * Measures a class: first and later pages alternate, and every second search is followed by a page of known payments, so that other load
 * on the machine affects all of them alike.
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

/** Times of a class among few payments and among many. */
export interface Growth {
  readonly few: Times
  readonly many: Times
}

/** Measures a class among few payments and among many, in alternation, first and later pages. */
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

/** Times of the service and of plain SQL for the same searches. */
export interface Compared {
  readonly ours: Times
  /** Of the faster way to write it; infinite where the server cancelled a statement that took too long. */
  readonly plain: Times
}

/** How many searches are compared, and for how long. */
export interface CompareTerms {
  readonly maxSearches: number
  readonly budgetMs: number
}

/**
 * Measures the service and plain SQL in alternation. Both make payments of the rows of prepared statements in the same way. Plain SQL runs
 * each search once unmeasured, because the service has run it before.
 *
 * @param plain - a pool of one connection that plans for the values of each statement
 */
export async function measurePlain(
  { subject, plain }: { readonly subject: Subject; readonly plain: Knex },
  queries: readonly PreparedQuery[],
  terms: CompareTerms,
): Promise<Compared> {
  const ways = plainWays((queries[0] as PreparedQuery).filter)
  const ours: number[] = []
  const found: Times[] = []
  for (const way of ways) {
    const times = await compareInSlices(
      (query) => subject.search(query.sent),
      (query) => searchPlain(plain, query, way),
      queries,
      { ...terms, budgetMs: terms.budgetMs / ways.length },
    )
    ours.push(...times.ours)
    found.push(timesOf(times.plain))
  }
  const [fastest] = found.toSorted((one, other) => one.p50 - other.p50)
  return { ours: timesOf(ours), plain: fastest as Times }
}

async function compareInSlices(
  search: (query: PreparedQuery) => Promise<unknown>,
  plain: (query: PreparedQuery) => Promise<unknown>,
  queries: readonly PreparedQuery[],
  { maxSearches, budgetMs }: CompareTerms,
): Promise<{ readonly ours: number[]; readonly plain: number[] }> {
  const times = { ours: [] as number[], plain: [] as number[] }
  const endsAtMs = performance.now() + budgetMs
  for (let nth = 0; nth < maxSearches && performance.now() < endsAtMs; nth++) {
    const query = queries[nth % queries.length] as PreparedQuery
    const plainMs = () => timed(() => plain(query)).catch(onTimeout)
    const firstMs = nth < queries.length ? await plainMs() : 0
    times.ours.push(await timed(() => search(query)))
    // where the first run alone takes the whole budget, it counts
    const isOver = performance.now() + firstMs > endsAtMs
    times.plain.push(isOver && firstMs > 0 ? firstMs : await plainMs())
    if (isOver) break
  }
  return times
}

/** Reads the payments of a search by plain SQL. */
export async function searchPlain(
  knex: Knex,
  { filter, input, position }: PreparedQuery,
  way: PlainWay,
): Promise<readonly Payment[]> {
  const { sortBy = 'date', sortOrder = 'desc' } = input
  const query = { filter, sortBy, sortOrder, position, limit: PAGE + 1, way }
  const { sql, bindings } = plainStatement(query, readPaymentColumns)
  const [rows = []] = await runNamed(knex, [raw(sql, bindings)], undefined)
  return rows.map((row) => paymentOfRow(row, NO_HEADS))
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
