import { timed } from './measure-class.ts'
import type { PreparedClass } from './prepare-queries.ts'
import type { PreparedQuery, Subject } from './subject.ts'

/** A search of a class that is slow whenever it is asked. */
export interface SlowSearch {
  readonly page: 'first page' | 'later page'
  readonly query: PreparedQuery
  /** The least of its times in ms, the first not counted. */
  readonly ms: number
}

const TIMES = 3

/** Every search of a class by the time it takes, the slowest first. What was slow once, by chance, is not among the first. */
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
