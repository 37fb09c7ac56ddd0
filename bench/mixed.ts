/**
 * Mixed searches of many keys, as a service with many customers gets them: every class one after the other, of the accounts one after the other, first and later pages,
 * over HTTP, from as many callers as there are connections. Callers, service and database share the machine.
 *
 *   npm run bench:mixed -- --data DIR                              ten minutes on one process, then ten on two
 *   npm run bench:mixed -- --data DIR --minutes 1 --processes 2    one minute on two
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { Agent, request } from 'node:http'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { issueApiKey } from '../src/auth/manage-keys.ts'
import { createApiKeyRepository } from '../src/auth/sql/api-key-repository.ts'
import { createDatabase } from '../src/postgres/knex.ts'
import type { SearchInput } from '../src/search/filter/payment-filter.ts'
import { report } from './report.ts'
import { baseUrlOf, urlOf } from './search/measure-export.ts'
import { openData } from './search/open-data.ts'
import { drawFrom, PAGE } from './search/prepare-queries.ts'
import { samplePayments } from './search/sample-payments.ts'
import { searchClasses } from './search/search-classes.ts'
import { seededRandom } from './search/seeded-random.ts'

const { values } = parseArgs({
  options: {
    data: { type: 'string' },
    rows: { type: 'string', default: '10000000' },
    minutes: { type: 'string', default: '10' },
    /** One or two; both one after the other where it is not given. */
    processes: { type: 'string' },
  },
})
if (values.data === undefined) throw new Error('name the folder of the payments: --data DIR')
const KEYS = 100
/** Accounts with payments enough that searches differ. */
const ACCOUNTS = 10
const CALLERS = 16
const VARIANTS = 20
const minutes = Number(values.minutes)
const say = (text: string) => console.error(text)

await using stack = new AsyncDisposableStack()
const dataDir = resolve(values.data)
const database = await openData({ dataDir, rows: Number(values.rows), seed: 1, poolMax: 4, say }, stack)
const customers = await prepareCustomers()
const counts = values.processes === undefined ? [1, 2] : [Number(values.processes)]
const figures = []
for (const processes of counts) figures.push(...(await measure(processes)))
await report('mixed', figures)

interface Customer {
  readonly key: string
  readonly queries: readonly string[]
}

/** Keys of the accounts, each with searches of every class that its account's payments give. */
async function prepareCustomers(): Promise<Customer[]> {
  const repository = createApiKeyRepository(database.knex)
  const queries = new Map<string, string[]>()
  for (let nth = 1; nth <= ACCOUNTS; nth++) {
    const sampler = createDatabase(database.connection, { poolMin: 1, poolMax: 1 })
    const { payments } = await samplePayments(sampler, { accountId: nth, count: 1_000, seed: nth })
    await sampler.destroy()
    const draw = drawFrom(payments, seededRandom(nth))
    const drawn = searchClasses.flatMap((each) => Array.from({ length: VARIANTS }, () => queryOf(each.draw(draw))))
    queries.set(`account-${nth}`, drawn)
  }
  const now = new Date()
  const made: Customer[] = []
  for (let nth = 0; nth < KEYS; nth++) {
    const account = `account-${1 + (nth % ACCOUNTS)}`
    const { key } = await issueApiKey(repository, { account, scopes: ['payments:read'], now, callsPerMinute: 0 })
    made.push({ key, queries: queries.get(account) ?? [] })
  }
  return made
}

function queryOf(input: SearchInput): string {
  const pairs = Object.entries({ ...input, limit: PAGE }).flatMap(([name, value]) =>
    [value].flat().map((each) => [name, String(each)] as [string, string]),
  )
  return new URLSearchParams(pairs).toString()
}

async function measure(processes: number) {
  const services = await Promise.all(Array.from({ length: processes }, startService))
  const agent = new Agent({ keepAlive: true, maxSockets: CALLERS })
  const random = seededRandom(7)
  const times: number[] = []
  let [failed, pages] = [0, 0]
  try {
    const endsAtMs = Date.now() + minutes * 60_000
    const work = async (_: unknown, caller: number) => {
      const { url } = services[caller % services.length] as Service
      while (Date.now() < endsAtMs) {
        const { key, queries } = customers[Math.floor(random() * KEYS)] as Customer
        const query = queries[Math.floor(random() * queries.length)] ?? ''
        const startedMs = performance.now()
        const first = await ask(agent, `${url}/v1/payments?${query}`, key)
        times.push(performance.now() - startedMs)
        if (first.status !== 200) failed += 1
        const { nextCursor } = first.body.pagination ?? {}
        if (nextCursor === undefined || random() < 0.5) continue
        const laterMs = performance.now()
        await ask(agent, `${url}/v1/payments?${new URLSearchParams({ cursor: nextCursor }).toString()}`, key)
        times.push(performance.now() - laterMs)
        pages += 1
      }
    }
    await Promise.all(Array.from({ length: CALLERS }, work))
  } finally {
    agent.destroy()
    for (const { child } of services) child.kill('SIGTERM')
    await Promise.all(services.map(({ ended }) => ended))
  }
  const sorted = times.toSorted((a, b) => a - b)
  const at = (share: number) => sorted[Math.floor(sorted.length * share)] ?? 0
  say(`${processes} processes: ${times.length} searches, ${pages} of them later pages, ${failed} failed`)
  const named = (name: string, value: number, unit: string) => ({ name: `${name}.${processes}`, value, unit })
  return [
    named('mixed.throughput', times.length / (minutes * 60), 'searches/s'),
    named('mixed.p50', at(0.5), 'ms'),
    named('mixed.p99', at(0.99), 'ms'),
    named('mixed.slowest', at(0.999999), 'ms'),
    named('mixed.failed', failed, 'searches'),
  ]
}

interface Service {
  readonly url: string
  readonly child: ChildProcess
  readonly ended: Promise<unknown>
}

async function startService(): Promise<Service> {
  const child = spawn(process.execPath, ['--max-semi-space-size=8', 'src/main.ts', 'serve'], {
    cwd: join(import.meta.dirname, '..'),
    env: {
      PATH: process.env.PATH,
      DATABASE_URL: urlOf(database.connection),
      CHAINS_FILE: 'none',
      PORT: '0',
      LOG_LEVEL: 'error',
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  return { child, ended: once(child, 'exit'), url: await baseUrlOf(child) }
}

interface Answer {
  readonly status: number
  readonly body: { readonly pagination?: { readonly nextCursor?: string } }
}

async function ask(agent: Agent, url: string, key: string): Promise<Answer> {
  const call = request(url, { agent, headers: { 'x-api-key': key } })
  call.end()
  const [response] = await once(call, 'response')
  let text = ''
  for await (const chunk of response.setEncoding('utf8')) text += chunk as string
  return { status: response.statusCode, body: JSON.parse(text) as Answer['body'] }
}
