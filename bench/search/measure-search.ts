import type { Knex } from 'knex'
import { createDatabase, type DatabaseConnection } from '../../src/db/knex.ts'
import type { Account } from '../../src/domain/account.ts'
import { type MeasuredClass, measureClass, measurePlain, type Times, timed, timesOf, warm } from './measure-class.ts'
import { PAGE, prepareClass } from './prepare-queries.ts'
import { samplePayments } from './sample-payments.ts'
import type { SearchClass } from './search-classes.ts'
import { createSubject, type Subject } from './subject.ts'

/** What was found out about a class. */
export interface ClassResult {
  readonly name: string
  readonly alone: MeasuredClass
  /** At as many connections as were asked for. */
  readonly together: MeasuredClass
  readonly plain?: { readonly first: Times; readonly deep: Times }
}

export interface MeasuredSearch {
  readonly classes: readonly ClassResult[]
  /** A page far down against the first, both by date. */
  readonly depth: number
  readonly heapBytes: number
  readonly indexBytes: number
}

export interface MeasureSearchOptions {
  readonly connection: DatabaseConnection
  /** A pool with room for `connections`. */
  readonly knex: Knex
  readonly account: Account
  readonly classes: readonly SearchClass[]
  readonly seed: number
  readonly queries: number
  readonly connections: number
  readonly withPlain: boolean
  readonly say: (text: string) => void
}

const SAMPLE = 20_000
/** Different searches of a class, and different pages of known payments. */
const VARIANTS = 50
const CLASS_BUDGET_MS = 30_000
const PLAIN_BUDGET_MS = 10_000
const PLAIN_QUERIES = 50
const DEEP_PAGE = 50_000

/** Measures class after class. */
export async function measureSearch(options: MeasureSearchOptions): Promise<MeasuredSearch> {
  const { connection, knex, account, seed, queries, connections, say } = options
  await using stack = new AsyncDisposableStack()
  const sampler = stack.adopt(createDatabase(connection, { poolMin: 1, poolMax: 1 }), (pool) => pool.destroy())
  const plain = stack.adopt(createDatabase(connection, { poolMax: 1, statementTimeoutMs: PLAIN_BUDGET_MS }), (pool) =>
    pool.destroy(),
  )
  const sample = await samplePayments(sampler, { accountId: account.id, count: SAMPLE, seed })
  const subject = createSubject(knex, account)
  const ids = sample.payments.map(({ id }) => id)
  // every so-manieth, since neighbours by id were drawn together
  const knownPages = Array.from({ length: VARIANTS }, (_, at) =>
    ids.filter((_id, place) => place % VARIANTS === at).slice(0, PAGE),
  )
  for (const page of knownPages) await subject.fetchKnown(page)

  const classes: ClassResult[] = []
  for (const each of options.classes) {
    const prepared = await prepareClass(each, { subject, sample, seed, variants: VARIANTS })
    await warm(subject, prepared, CLASS_BUDGET_MS / 3)
    const terms = { subject, knownPages, queries, budgetMs: CLASS_BUDGET_MS }
    const alone = await measureClass(prepared, { ...terms, connections: 1 })
    const together = await measureClass(prepared, { ...terms, connections })
    const plainTimes = options.withPlain && {
      plain: {
        first: await measurePlain(plain, prepared.first, { most: PLAIN_QUERIES, budgetMs: PLAIN_BUDGET_MS }),
        deep: await measurePlain(plain, prepared.deep, { most: PLAIN_QUERIES, budgetMs: PLAIN_BUDGET_MS }),
      },
    }
    classes.push({ name: each.name, alone, together, ...plainTimes })
    say(`${each.name}: ${describe(alone)}`)
  }
  return { classes, depth: await measureDepth(subject), ...(await sizesOf(knex)) }
}

function describe({ all, known }: MeasuredClass): string {
  const ratio = (one: number, other: number) => (one / other).toFixed(2)
  return `p50 ${all.p50.toFixed(2)} ms (× ${ratio(all.p50, known.p50)}), p99 ${all.p99.toFixed(2)} ms (× ${ratio(all.p99, known.p99)})`
}

/** The page of that number, or the last one of a small account, by a cursor at the payment before it, against the first. */
async function measureDepth(subject: Subject): Promise<number> {
  const { knex, account } = subject
  const count = (await knex('payments').where({ account_id: account.id }).count({ n: '*' }))[0]?.['n']
  const offset = Math.min((DEEP_PAGE - 1) * PAGE, Number(count) - PAGE) - 1
  const { rows } = await knex.raw(
    'select * from payments where account_id = ? order by timestamp desc, id desc offset ? limit 1',
    [account.id, offset],
  )
  const input = { sortBy: 'date', sortOrder: 'desc', limit: PAGE } as const
  const query = { input, filter: await subject.parse(input), sent: input }
  const far = subject.laterPage(query, rows[0], 'forward')
  const times = { near: [] as number[], far: [] as number[] }
  for (let nth = 0; nth < 550; nth++) {
    const near = await timed(() => subject.search(query.sent))
    const deep = await timed(() => subject.search(far.sent))
    if (nth < 50) continue
    times.near.push(near)
    times.far.push(deep)
  }
  return timesOf(times.far).p50 / timesOf(times.near).p50
}

async function sizesOf(knex: Knex): Promise<Pick<MeasuredSearch, 'heapBytes' | 'indexBytes'>> {
  const { rows } = await knex.raw<{ rows: { indexes: bigint; heap: bigint }[] }>(
    `select pg_indexes_size('payments') as indexes, pg_table_size('payments') as heap`,
  )
  const [size = { indexes: 0n, heap: 0n }] = rows
  return { heapBytes: Number(size.heap), indexBytes: Number(size.indexes) }
}
