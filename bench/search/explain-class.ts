import type { Knex } from 'knex'
import type { PreparedClass } from './prepare-queries.ts'
import type { Subject } from './subject.ts'

interface NoticingConnection {
  on(event: 'notice', listener: (notice: { readonly message?: string }) => void): void
}

interface PoolClient {
  acquireConnection(): Promise<NoticingConnection>
  releaseConnection(connection: NoticingConnection): Promise<void>
}

/**
 * Has the server tell of every statement how it ran it: text, parameters and plan, as `explain (analyze, buffers)` gives it, but of the
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

/** Runs a first and a later page of a class, each once to warm and once with its statements and their plans printed. */
export async function explainClass(
  subject: Subject,
  { first, deep }: PreparedClass,
  print: (text: string) => void,
): Promise<void> {
  const pages = [
    ['first page', first[0]],
    ['later page', deep.find(({ position }) => position?.direction === 'forward') ?? deep[0]],
  ] as const
  for (const [, query] of pages) if (query !== undefined) await subject.search(query.sent)
  let onPlan: (text: string) => void = () => {}
  await explainAll(subject.knex, (text) => onPlan(text))
  for (const [name, query] of pages) {
    if (query === undefined) continue
    print(`\n--- ${name}: ${JSON.stringify(query.input)} ${JSON.stringify(query.position ?? '')}`)
    onPlan = print
    const startedMs = performance.now()
    const { payments } = await subject.search(query.sent)
    onPlan = () => {}
    print(`${payments.length} payments in ${(performance.now() - startedMs).toFixed(1)} ms, plans included`)
  }
}
