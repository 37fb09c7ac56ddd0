/**
 * How fast payments are found among ten million: every class of search, first and later pages, on one connection and on eight, compared with
 * fetching known payments by their ids, and with the same searches in plain SQL as its best user writes it.
 *
 *   npm run bench:search -- --rows 1000000             a million payments, in a folder that is removed afterwards
 *   npm run bench:search -- --data /var/tmp/payments   keeps the folder and uses it again
 *   npm run bench:search -- --data DIR --growth --few DIR      also against a million
 *   npm run bench:search -- --data DIR --hold          fills the folder and keeps its server running
 *   npm run bench:search -- --data DIR --class NAME    one class: statements and plans; a prefix: measures its classes
 *   npm run bench:search -- --data DIR --class NAME --slowest 5      the slowest searches of each class, and the plans of the first
 */
import { once } from 'node:events'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { createDatabase } from '../src/postgres/knex.ts'
import { report } from './report.ts'
import { describeSearch, explainSearches, typicalPages } from './search/explain-class.ts'
import { type ColdPage, coldFigures, measureCold } from './search/measure-cold.ts'
import { type MeasuredExport, measureExport } from './search/measure-export.ts'
import { type MeasuredIngest, measureIngest } from './search/measure-ingest.ts'
import { measurePath } from './search/measure-path.ts'
import { type MeasuredSearch, measureSearch } from './search/measure-search.ts'
import { measureSummaries } from './search/measure-summary.ts'
import { type LoadedDatabase, openData } from './search/open-data.ts'
import { type PreparedClass, prepareClass } from './search/prepare-queries.ts'
import { samplePayments } from './search/sample-payments.ts'
import { searchClasses } from './search/search-classes.ts'
import { exportFigures, ingestFigures, markdownOf, metOf, searchFigures, searchTable } from './search/search-figures.ts'
import { slowestFirst } from './search/slowest-searches.ts'
import { createSubject, type Subject } from './search/subject.ts'

const { values } = parseArgs({
  options: {
    rows: { type: 'string', default: '10000000' },
    seed: { type: 'string', default: '1' },
    data: { type: 'string' },
    hold: { type: 'boolean', default: false },
    class: { type: 'string' },
    /** Prints this many of the slowest searches of each class instead of measuring it. */
    slowest: { type: 'string' },
    queries: { type: 'string', default: '1000' },
    /** Compares each class with the same class among a million payments, which are kept in the folder `few`. */
    growth: { type: 'boolean', default: false },
    few: { type: 'string' },
    /** Measures only `classes`, `ingest`, `export`, `cold` (pages that are in no cache; as root), `summary` or `path` (the steps from the database to the text). */
    only: { type: 'string' },
  },
})
const rows = Number(values.rows)
const seed = Number(values.seed)
const CONNECTIONS = 8
const FEW = 1_000_000
const SLOWEST_VARIANTS = 50
const OUT = join(import.meta.dirname, 'out')
/** The account with the most payments. */
const account = { id: 1, name: 'account-1' }
const say = (text: string) => console.error(text)

await using stack = new AsyncDisposableStack()
const dataDir = values.data === undefined ? join(await makeFolder(), 'data') : resolve(values.data)
const database = await openData({ dataDir, rows, seed, poolMax: CONNECTIONS, say }, stack)
const named = searchClasses.filter(({ name }) => name === values.class)
const chosen = named.length > 0 ? named : searchClasses.filter(({ name }) => name.startsWith(values.class ?? ''))
if (values.hold) {
  say(`the database of ${dataDir} runs until this is interrupted`)
  await Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')])
} else if (values.slowest !== undefined) await printSlowest(database, Number(values.slowest))
else if (named.length > 0) await explain(database)
else if (values.only === 'export') await report('search-export', exportFigures(await runExport(database)))
else if (values.only === 'summary')
  await report('search-summary', await measureSummaries(createSubject(database.knex, account), say))
else if (values.only === 'path') await report('search-path', await measurePath(createSubject(database.knex, account)))
else if (values.only === 'cold') await report('search-cold', coldFigures(await readCold(database), say))
else if (values.only === 'ingest') await report('search-ingest', ingestFigures(await runIngest(database)))
else await measure(database)

async function explain(database: LoadedDatabase): Promise<void> {
  await withEachClass(database, 3, (subject, prepared) => explainSearches(subject, typicalPages(prepared), console.log))
}

async function printSlowest(database: LoadedDatabase, count: number): Promise<void> {
  await withEachClass(database, SLOWEST_VARIANTS, async (subject, prepared) => {
    const found = (await slowestFirst(subject, prepared)).slice(0, count)
    for (const { page, query, ms } of found) console.log(`${ms.toFixed(1)} ms, ${page}: ${describeSearch(query)}`)
    if (named.length > 0) await explainSearches(subject, found.slice(0, 1), console.log)
  })
}

async function readCold(database: LoadedDatabase): Promise<ColdPage[]> {
  const pages: ColdPage[] = []
  await withEachClass(database, 3, async (subject, prepared) => {
    pages.push(...(await measureCold(subject, prepared)))
  })
  return pages
}

/** Opens a connection for each class, because the server goes on reporting the statements of a connection. */
async function withEachClass(
  { connection }: LoadedDatabase,
  variants: number,
  work: (subject: Subject, prepared: PreparedClass) => Promise<void>,
): Promise<void> {
  for (const each of chosen) {
    await using own = new AsyncDisposableStack()
    const knex = own.adopt(createDatabase(connection, { poolMin: 1, poolMax: 1 }), (pool) => pool.destroy())
    const subject = createSubject(knex, account)
    const sample = await samplePayments(knex, { accountId: account.id, count: 20_000, seed })
    console.log(`\n=== ${each.name}`)
    await work(subject, await prepareClass(each, { subject, sample, seed, variants }))
  }
}

async function measure(database: LoadedDatabase): Promise<void> {
  const few = values.growth
    ? await openData({ dataDir: await fewDir(), rows: FEW, seed, poolMax: 1, say }, stack)
    : undefined
  const size = rows === 10_000_000 ? [] : [rows]
  const name = ['search', ...size, ...(values.class === undefined ? [] : [values.class])].join('-')
  await mkdir(OUT, { recursive: true })
  const measured: MeasuredSearch = await measureSearch({
    database,
    few,
    account,
    classes: chosen,
    seed,
    queries: Number(values.queries),
    connections: CONNECTIONS,
    // a run that is interrupted leaves what it has measured
    onClass: (classes) => writeFile(join(OUT, `${name}-classes.md`), markdownOf(classes)),
    say,
  })
  console.table(searchTable(measured))
  say(metOf(measured.classes))
  const isWhole = values.only === undefined && values.class === undefined
  const flow = isWhole ? [...exportFigures(await runExport(database)), ...ingestFigures(await runIngest(database))] : []
  await report(name, [...searchFigures(measured), ...flow])
}

function runIngest({ knex }: LoadedDatabase): Promise<MeasuredIngest> {
  return measureIngest({ knex, account, modelAccountId: 2, rows: Math.min(100_000, rows / 10), say })
}

/** A year of an account that has three tenths of all payments: a million of ten million. Some weeks are exported first, as a warm-up. */
function runExport({ connection }: LoadedDatabase): Promise<MeasuredExport> {
  const isLarge = rows >= 10_000_000
  return measureExport({
    connection,
    accountName: account.name,
    query: isLarge ? 'toDate=2024-05-31' : '',
    warmQuery: isLarge ? 'toDate=2023-06-20' : 'toDate=2023-11-30',
    say,
  })
}

async function fewDir(): Promise<string> {
  return values.few === undefined ? join(await makeFolder(), 'few') : resolve(values.few)
}

async function makeFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'waybill-search-'))
  stack.defer(() => rm(folder, { recursive: true }))
  return folder
}
