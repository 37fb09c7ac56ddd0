import { writeFileSync } from 'node:fs'
import { type Figure, median } from '../report.ts'
import { timed } from './measure-class.ts'
import type { PreparedClass } from './prepare-queries.ts'
import type { Subject } from './subject.ts'

/** A page and the time that it took. */
export interface ColdPage {
  readonly page: string
  readonly ms: number
}

const MAX_MS = 150

/**
 * Times a first and a later page of a class whose data are neither in PostgreSQL's buffers nor in the system's cache. What the process remembers of the
 * account stays.
 *
 * @throws Error where the system's cache cannot be dropped, which only root may do
 */
export async function measureCold(subject: Subject, { name, first, deep }: PreparedClass): Promise<ColdPage[]> {
  const { knex } = subject
  await knex.raw('create extension if not exists pg_buffercache')
  const pages: ColdPage[] = []
  for (const [kind, query] of Object.entries({ first: first[0], later: deep[0] })) {
    if (query === undefined) continue
    await subject.search(query.sent)
    await knex.raw('checkpoint')
    await knex.raw('select pg_buffercache_evict_all()')
    writeFileSync('/proc/sys/vm/drop_caches', '3')
    pages.push({ page: `${name}, ${kind} page`, ms: await timed(() => subject.search(query.sent)) })
  }
  await knex.raw('drop extension pg_buffercache')
  return pages
}

/** @param say - tells the slow pages by name */
export function coldFigures(pages: readonly ColdPage[], say: (text: string) => void): Figure[] {
  const slow = pages.filter(({ ms }) => ms > MAX_MS).toSorted((one, other) => other.ms - one.ms)
  for (const { page, ms } of slow) say(`${page}: ${ms.toFixed(0)} ms`)
  const times = pages.map(({ ms }) => ms)
  return [
    { name: 'cold.slowest', value: Math.max(...times), unit: 'ms', target: { atMost: MAX_MS } },
    { name: 'cold.slow', value: slow.length, unit: `of ${pages.length} pages` },
    { name: 'cold.median', value: median(times), unit: 'ms' },
  ]
}
