import { createDatabase } from '../../src/postgres/knex.ts'
import { timed, timesOf } from '../search/measure-class.ts'
import { prepareClass } from '../search/prepare-queries.ts'
import { samplePayments } from '../search/sample-payments.ts'
import { searchClasses } from '../search/search-classes.ts'
import { createSubject, type PreparedQuery } from '../search/subject.ts'
import { describePlace, type OpenPlace } from './open-place.ts'

export interface PlaceTimes {
  /** Milliseconds of a search on one connection. */
  readonly p50: number
  readonly p99: number
  /** Searches a second on all connections together. */
  readonly perSecond: number
  /** Median of each class, in milliseconds. */
  readonly classes: ReadonlyMap<string, number>
}

interface SlotTerms {
  readonly seed: number
  readonly rounds: number
  readonly say: (text: string) => void
}

const ACCOUNT = { id: 1, name: 'account-1' }
const SAMPLE = 5_000
const VARIANTS = 8
const CONNECTIONS = 8

/**
 * Runs the same searches of every class on each database, one after the other and then on several connections at once.
 *
 * @throws Error where a page differs from that of the first database
 */
export async function searchAlternately(
  places: readonly OpenPlace[],
  { seed, rounds, say }: SlotTerms,
): Promise<PlaceTimes[]> {
  const queries = await drawQueries(places[0] as OpenPlace, seed)
  const subjects = places.map(({ knex }) => createSubject(knex, ACCOUNT))
  say(`${queries.length} searches`)
  for (const { sent } of queries) {
    const pages = await Promise.all(subjects.map((subject) => subject.search(sent)))
    const [first, ...others] = pages.map(({ payments }) => payments.map(({ id }) => id).join())
    const wrong = others.findIndex((ids) => ids !== first)
    if (wrong >= 0) {
      const place = describePlace(places[wrong + 1] as OpenPlace)
      throw new Error(`${place} gives another page of ${JSON.stringify(sent)} than the first database`)
    }
  }
  const alone = places.map(() => queries.map((): number[] => []))
  const togetherMs = places.map(() => 0)
  for (let round = 0; round < rounds; round++) {
    for (const [nth, subject] of subjects.entries()) {
      for (const [at, { sent }] of queries.entries()) alone[nth]?.[at]?.push(await timed(() => subject.search(sent)))
      let next = 0
      const work = async () => {
        for (let query = queries[next++]; query !== undefined; query = queries[next++]) await subject.search(query.sent)
      }
      togetherMs[nth] =
        (togetherMs[nth] ?? 0) + (await timed(() => Promise.all(Array.from({ length: CONNECTIONS }, work))))
    }
    say(`search: ${round + 1} of ${rounds} rounds`)
  }
  return places.map((_, nth) => {
    const times = alone[nth] ?? []
    const { p50, p99 } = timesOf(times.flat())
    const byClass = Map.groupBy(queries.keys(), (at) => queries[at]?.name ?? '')
    const medians = [...byClass].map(
      ([name, ats]) => [name, timesOf(ats.flatMap((at) => times[at] ?? [])).p50] as const,
    )
    return {
      p50,
      p99,
      perSecond: (queries.length * rounds * 1_000) / (togetherMs[nth] ?? 1),
      classes: new Map(medians),
    }
  })
}

/** A search, and the class that it is of. */
interface NamedQuery extends PreparedQuery {
  readonly name: string
}

async function drawQueries({ url, knex }: OpenPlace, seed: number): Promise<NamedQuery[]> {
  const sampler = createDatabase(url, { poolMin: 1, poolMax: 1 })
  try {
    const sample = await samplePayments(sampler, { accountId: ACCOUNT.id, count: SAMPLE, seed })
    const subject = createSubject(knex, ACCOUNT)
    const queries: NamedQuery[] = []
    for (const each of searchClasses) {
      const { first, deep } = await prepareClass(each, { subject, sample, seed, variants: VARIANTS })
      const some = [...first.slice(0, VARIANTS), ...deep.slice(0, VARIANTS)]
      queries.push(...some.map((query) => ({ ...query, name: each.name })))
    }
    return queries
  } finally {
    await sampler.destroy()
  }
}
