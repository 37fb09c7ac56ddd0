import type { Knex } from 'knex'
import { searchPlain } from './measure-class.ts'
import { plainWays } from './plain-sql.ts'
import type { PreparedClass } from './prepare-queries.ts'
import type { PreparedQuery, Subject } from './subject.ts'

interface NoticingConnection {
  on(event: 'notice', listener: (notice: { readonly message?: string }) => void): void
}

interface PoolClient {
  acquireConnection(): Promise<NoticingConnection>
  releaseConnection(connection: NoticingConnection): Promise<void>
}

/**
 * Makes the server report text, parameters and plan of each statement that it runs: those of `explain (analyze, buffers)`, but of the
 * statement as the service sends it, prepared or not.
 *
 * @param knex - a pool of one connection
 */
async function explainAll(knex: Knex, onPlan: (text: string) => void): Promise<void> {
  await knex.raw(`load 'auto_explain'`)
  const settings = { log_min_duration: '0', log_analyze: 'on', log_buffers: 'on', log_level: 'notice' }
  for (const [name, value] of Object.entries(settings)) await knex.raw(`set auto_explain.${name} = '${value}'`)
  const client = knex.client as PoolClient
  const connection = await client.acquireConnection()
  connection.on('notice', ({ message = '' }) => onPlan(message))
  await client.releaseConnection(connection)
}

/** A search whose plans are printed. */
export interface ExplainedSearch {
  readonly page: string
  readonly query: PreparedQuery
}

/** A first and a later page of a class. */
export function typicalPages({ first, deep }: PreparedClass): ExplainedSearch[] {
  const later = deep.find(({ position }) => position?.direction === 'forward') ?? deep[0]
  const pages = [
    { page: 'first page', query: first[0] },
    { page: 'later page', query: later },
  ]
  return pages.flatMap(({ page, query }) => (query === undefined ? [] : [{ page, query }]))
}

/** Runs each search once unmeasured, then prints its statements with their plans, and those of the same search in plain SQL. */
export async function explainSearches(
  subject: Subject,
  searches: readonly ExplainedSearch[],
  print: (text: string) => void,
): Promise<void> {
  for (const { query } of searches) await subject.search(query.sent)
  let onPlan: (text: string) => void = () => {}
  await explainAll(subject.knex, (text) => onPlan(text))
  for (const { page, query } of searches) {
    print(`\n--- ${page}: ${describeSearch(query)}`)
    onPlan = print
    const startedMs = performance.now()
    const { payments } = await subject.search(query.sent)
    onPlan = () => {}
    print(`${payments.length} payments in ${(performance.now() - startedMs).toFixed(1)} ms, plans included`)
    for (const way of plainWays(query.filter)) {
      print(`\n--- the same in plain SQL, way "${way}"`)
      onPlan = print
      await searchPlain(subject.knex, query, way)
      onPlan = () => {}
    }
  }
}

/** The filters and the order, and where the page begins. */
export function describeSearch({ input, position }: PreparedQuery): string {
  return `${JSON.stringify(input)} ${JSON.stringify(position ?? '')}`
}
