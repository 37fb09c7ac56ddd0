/**
 * How fast payments are found among ten million.
 *
 *   npm run bench:search -- --quick                    a million payments, in a folder that is removed afterwards
 *   npm run bench:search -- --data /var/tmp/payments   keeps the folder and uses it again
 *   npm run bench:search -- --data DIR --hold          fills the folder and keeps its server running, for looking at plans
 */
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { report } from './report.ts'
import { openData } from './search/open-data.ts'

const { values } = parseArgs({
  options: {
    rows: { type: 'string' },
    quick: { type: 'boolean', default: false },
    seed: { type: 'string', default: '1' },
    data: { type: 'string' },
    hold: { type: 'boolean', default: false },
  },
})
const ROWS = Number(values.rows ?? (values.quick ? 1_000_000 : 10_000_000))
const say = (text: string) => console.error(text)

await using stack = new AsyncDisposableStack()
const dataDir = values.data === undefined ? join(await makeFolder(), 'data') : resolve(values.data)
const { knex } = await openData({ dataDir, rows: ROWS, seed: Number(values.seed), poolMax: 9, say }, stack)
if (values.hold) {
  say(`the database of ${dataDir} runs until this is interrupted`)
  await Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')])
} else {
  const { rows: sizes } = await knex.raw<{ rows: { indexes: bigint; heap: bigint }[] }>(
    `select pg_indexes_size('payments') as indexes, pg_table_size('payments') as heap`,
  )
  const [size = { indexes: 0n, heap: 1n }] = sizes
  await report('search', [
    { name: 'indexes/heap', value: Number(size.indexes) / Number(size.heap), unit: '', target: { atMost: 2.3 } },
  ])
}

async function makeFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'waybill-search-'))
  stack.defer(() => rm(folder, { recursive: true }))
  return folder
}
