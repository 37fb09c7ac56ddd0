import type { Knex } from 'knex'
import type { Account } from '../../src/domain/account.ts'
import type { Connection } from '../../src/postgres/embedded/embedded-connection.ts'
import { createDatabase } from '../../src/postgres/knex.ts'
import {
  type Compared,
  type Growth,
  type MeasuredClass,
  measureClass,
  measureGrowth,
  measurePlain,
  timed,
  timesOf,
  warm,
} from './measure-class.ts'
import type { LoadedDatabase } from './open-data.ts'
import { PAGE, type PreparedClass, prepareClass } from './prepare-queries.ts'
import { type PaymentSample, samplePayments } from './sample-payments.ts'
import type { SearchClass } from './search-classes.ts'
import { createSubject, type Subject } from './subject.ts'

/** What was measured of a class. */
export interface ClassResult {
  readonly name: string
  readonly alone: MeasuredClass
  /** With several connections at once. */
  readonly together: MeasuredClass
  readonly plain: { readonly first: Compared; readonly deep: Compared }
  readonly growth?: Growth | undefined
}

export interface MeasuredSearch {
  readonly classes: readonly ClassResult[]
  /** How many times as long a page far down takes as the first page, both by date. */
  readonly depth: number
  readonly heapBytes: number
  readonly indexBytes: number
}

export interface MeasureSearchOptions {
  readonly database: LoadedDatabase
  /** A database with fewer payments, to measure growth. */
  readonly few?: LoadedDatabase | undefined
  readonly account: Account
  readonly classes: readonly SearchClass[]
  readonly seed: number
  readonly queries: number
  readonly connections: number
  /** Called after each class, with all classes measured so far. */
  readonly onClass?: (classes: readonly ClassResult[]) => Promise<void>
  readonly say: (text: string) => void
}

const SAMPLE = 20_000
/** Different searches of a class, of a run with few queries fewer, and different pages of known payments. */
const VARIANTS = 50
const QUERIES_OF_A_VARIANT = 4
const CLASS_BUDGET_MS = 30_000
/** For a class: half for first pages, half for later ones. One statement may take its whole half. */
export const PLAIN_BUDGET_MS = 10_000
const DEEP_PAGE = 50_000

/** Measures one class after the other. */
export async function measureSearch(options: MeasureSearchOptions): Promise<MeasuredSearch> {
  await using stack = new AsyncDisposableStack()
  const searched = await openSearched(options.database, options, stack)
  const few = options.few && (await openSearched(options.few, options, stack))
  const plain = await connectPlain(options.database.connection, stack)
  const knownPages = await knownPagesOf(searched)
  const classes: ClassResult[] = []
  const startedMs = performance.now()
  for (const each of options.classes) {
    const result = await measureOne(each, { options, searched, few, plain, knownPages })
    classes.push(result)
    const minutes = ((performance.now() - startedMs) / 60_000).toFixed(1)
    options.say(`${classes.length} of ${options.classes.length}, ${minutes} min: ${describe(result)}`)
    await options.onClass?.(classes)
  }
  return { classes, depth: await measureDepth(searched.subject), ...(await sizesOf(options.database.knex)) }
}

/** A database and a sample of its payments, from which searches are drawn. */
interface Searched {
  readonly subject: Subject
  readonly sample: PaymentSample
}

async function openSearched(
  { connection, knex }: LoadedDatabase,
  { account, seed }: MeasureSearchOptions,
  stack: AsyncDisposableStack,
): Promise<Searched> {
  const sampler = connect(connection, stack)
  const sample = await samplePayments(sampler, { accountId: account.id, count: SAMPLE, seed })
  return { subject: createSubject(knex, account), sample }
}

/** A pool of one connection. */
function connect(connection: Connection, stack: AsyncDisposableStack, statementTimeoutMs = 0): Knex {
  const knex = createDatabase(connection, { poolMin: 1, poolMax: 1, statementTimeoutMs })
  return stack.adopt(knex, (pool) => pool.destroy())
}

/** Plans are made for the values of each statement: a generic plan for any dates and amounts may read a thousand times as much. */
async function connectPlain(connection: Connection, stack: AsyncDisposableStack): Promise<Knex> {
  const knex = connect(connection, stack, PLAIN_BUDGET_MS / 2)
  await knex.raw('set plan_cache_mode = force_custom_plan')
  return knex
}

/** Pages of known payments, each fetched once. Neighbours by id were sampled together, so a page takes payments at even distances. */
async function knownPagesOf({ subject, sample }: Searched): Promise<string[][]> {
  const pages = Array.from({ length: VARIANTS }, (_, at) =>
    sample.payments
      .filter((_payment, place) => place % VARIANTS === at)
      .slice(0, PAGE)
      .map(({ id }) => id),
  )
  for (const page of pages) await subject.fetchKnown(page)
  return pages
}

interface Measuring {
  readonly options: MeasureSearchOptions
  readonly searched: Searched
  readonly few: Searched | undefined
  readonly plain: Knex
  readonly knownPages: readonly (readonly string[])[]
}

async function measureOne(each: SearchClass, measuring: Measuring): Promise<ClassResult> {
  const { options, searched, few, plain, knownPages } = measuring
  const { queries, connections } = options
  const variants = Math.min(VARIANTS, Math.ceil(queries / QUERIES_OF_A_VARIANT))
  const prepare = async (of: Searched): Promise<PreparedClass> => {
    const prepared = await prepareClass(each, { ...of, seed: options.seed, variants })
    await warm(of.subject, prepared, CLASS_BUDGET_MS / 3)
    return prepared
  }
  const prepared = await prepare(searched)
  const terms = { subject: searched.subject, knownPages, queries, budgetMs: CLASS_BUDGET_MS }
  const alone = await measureClass(prepared, { ...terms, connections: 1 })
  const together = await measureClass(prepared, { ...terms, connections })
  const growth =
    few &&
    (await measureGrowth(
      { subject: few.subject, prepared: await prepare(few) },
      { subject: searched.subject, prepared },
      { queries: queries / 2, budgetMs: CLASS_BUDGET_MS / 3 },
    ))
  const plainTerms = { maxSearches: variants, budgetMs: PLAIN_BUDGET_MS / 2 }
  return {
    name: each.name,
    alone,
    together,
    growth,
    plain: {
      first: await measurePlain({ subject: searched.subject, plain }, prepared.first, plainTerms),
      deep: await measurePlain({ subject: searched.subject, plain }, prepared.deep, plainTerms),
    },
  }
}

function describe({ name, alone: { all, known } }: ClassResult): string {
  const ratio = (one: number, other: number) => (one / other).toFixed(2)
  const p50 = `p50 ${all.p50.toFixed(2)} ms (× ${ratio(all.p50, known.p50)})`
  return `${name}: ${p50}, p99 ${all.p99.toFixed(2)} ms (× ${ratio(all.p99, known.p99)})`
}

/** Compares page {@link DEEP_PAGE}, or the last page of a small account, with the first. A cursor at the payment before it leads there. */
async function measureDepth(subject: Subject): Promise<number> {
  const { knex, account } = subject
  const { rows: counts } = await knex.raw<{ rows: { n: bigint }[] }>(
    'select count(*) as n from payments where account_id = ?',
    [account.id],
  )
  const offset = Math.min((DEEP_PAGE - 1) * PAGE, Number(counts[0]?.n) - PAGE) - 1
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
