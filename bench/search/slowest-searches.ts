import { timed } from './measure-class.ts'
import type { PreparedClass } from './prepare-queries.ts'
import type { PreparedQuery, Subject } from './subject.ts'

/** A search of a class, and how long it takes at best. */
export interface SlowSearch {
  readonly page: 'first page' | 'later page'
  readonly query: PreparedQuery
  /** The shortest of its times, the first run not counted. */
  readonly ms: number
}

const TIMES = 3

/** The searches of a class, the slowest first. The shortest time of each counts, so that one slow run by chance does not. */
export async function slowestFirst(subject: Subject, { first, deep }: PreparedClass): Promise<SlowSearch[]> {
  const searches = [
    ...first.map((query) => ({ page: 'first page' as const, query })),
    ...deep.map((query) => ({ page: 'later page' as const, query })),
  ]
  const found: SlowSearch[] = []
  for (const search of searches) {
    await subject.search(search.query.sent)
    const times: number[] = []
    for (let nth = 1; nth < TIMES; nth++) times.push(await timed(() => subject.search(search.query.sent)))
    found.push({ ...search, ms: Math.min(...times) })
  }
  return found.toSorted((one, other) => other.ms - one.ms)
}
