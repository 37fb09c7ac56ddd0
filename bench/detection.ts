/**
 * Measures how detection reads a chain's past into the embedded database, from a node that answers at once: a process of its own that is asked over HTTP.
 *
 *   npm run bench:detection -- --events 100000
 *   npm run bench:detection -- --only backfill --set shared_buffers=2GB --set max_wal_size=8GB
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { realpathSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { parseArgs } from 'node:util'
import type { Knex } from 'knex'
import { createApiKeyRepository } from '../src/auth/sql/api-key-repository.ts'
import { createChainDirectory } from '../src/chains/chain-directory.ts'
import type { ChainConfig } from '../src/chains/chains-file.ts'
import { createTokenDirectory } from '../src/chains/token-directory.ts'
import { createDetection, type Detection } from '../src/detection/detection.ts'
import type { Account } from '../src/domain/account.ts'
import { caip2Of } from '../src/domain/chain.ts'
import { openEmbeddedServer } from '../src/postgres/embedded/embedded-server.ts'
import { createDatabase } from '../src/postgres/knex.ts'
import { migrate } from '../src/postgres/migrations/migrate.ts'
import { createRequestRepository } from '../src/requests/sql/request-repository.ts'
import { forgetChain } from '../src/store/forget-chain.ts'
import { LeaseLostError } from '../src/store/leases-repository.ts'
import { meterCpu } from './cpu-seconds.ts'
import { BENCH_CHAIN_ID, type BenchSize, benchConfig, benchRequest } from './detection/bench-chain.ts'
import { measureOverhead } from './detection/measure-overhead.ts'
import { measurePlain } from './detection/measure-plain.ts'
import { type Figure, report } from './report.ts'

const { values } = parseArgs({
  options: {
    events: { type: 'string', default: '100000' },
    perBlock: { type: 'string', default: '1' },
    blocks: { type: 'string', default: '8000000' },
    only: { type: 'string', multiple: true },
    set: { type: 'string', multiple: true, default: [] },
  },
})
const EVENTS = Number(values.events)
const EMPTY_BLOCKS = Number(values.blocks)
const REQUESTS_AT_ONCE = 5_000
const LIVE_PAYMENTS = 5
const TAKEOVERS = 3

const logger = { debug() {}, info() {}, warn: console.error, error: console.error }

const folder = await mkdtemp(join(tmpdir(), 'waybill-detection-'))
await using stack = new AsyncDisposableStack()
stack.defer(() => rm(folder, { recursive: true }))
const settings = Object.fromEntries(values.set.map((setting) => setting.split('=')))
const server = await openEmbeddedServer({
  dataDir: join(folder, 'data'),
  signal: new AbortController().signal,
  settings,
})
stack.defer(() => server.release())
const knex = stack.adopt(createDatabase(server.connection(), { poolMax: 6 }), (pool) => pool.destroy())
await migrate(knex)
const account = await createApiKeyRepository(knex).ensureAccount('bench')
const wants = (name: string) => values.only?.includes(name) ?? true
const figures: Figure[] = []
if (wants('beside')) figures.push(...(await measureBeside()))
if (wants('backfill')) figures.push(...(await measureBackfill()))
if (wants('takeover')) figures.push(...(await measureTakeover()))
if (wants('overhead')) figures.push(...(await measureOverhead(knex)))
await report('detection', figures)

async function measureBackfill(): Promise<Figure[]> {
  const perBlock = Number(values.perBlock)
  await forgetBench()
  const size = { head: Math.ceil(EVENTS / perBlock) + 10, events: EVENTS, eventsABlock: perBlock }
  await storeRequests(knex, account)
  await using node = await startNode(size)
  const readCpu = await meterCpu(knex)
  const before = readCpu()
  const startedMs = performance.now()
  await readAll(openDetection(benchConfig([node.url])))
  const seconds = (performance.now() - startedMs) / 1_000
  const after = readCpu()
  const [counted] = await knex('payments')
    .whereNotNull('payer')
    .whereNotNull('gas')
    .where({ status: 3 })
    .count({ n: '*' })
  if (Number(counted?.['n']) !== EVENTS) throw new Error(`${counted?.['n']} payments were found instead of ${EVENTS}`)
  const plain = await measurePlain(knex, account.id, readCpu)
  const perEvent = (cpuSeconds: number) => (cpuSeconds * 1e6) / EVENTS
  const postgres = after.postgres - before.postgres
  return [
    { name: 'backfill.events/s', value: EVENTS / seconds, unit: 'events/s', target: { atLeast: 10_000 } },
    { name: 'backfill.node', value: perEvent(after.node - before.node), unit: 'CPU µs/event' },
    { name: 'backfill.postgres', value: perEvent(postgres), unit: 'CPU µs/event' },
    { name: 'plain.events/s', value: EVENTS / plain.seconds, unit: 'events/s' },
    { name: 'plain.postgres', value: perEvent(plain.postgresCpuSeconds), unit: 'CPU µs/event' },
    { name: 'postgres/plain', value: postgres / plain.postgresCpuSeconds, unit: 'CPU, x' },
  ]
}

/** On a machine much loaded a step may outlast the lease. Reading goes on then, as it does in a service. */
async function readAll(detection: Detection): Promise<void> {
  for (;;) {
    try {
      await detection.scanOnce()
      return
    } catch (error) {
      if (!(error instanceof LeaseLostError)) throw error
      console.error('the lease was lost and is taken again: the machine is too loaded for these figures')
    }
  }
}

/** Follows beside a back-fill of empty blocks: when payments in new blocks are seen, and how the heap grows over the second half. */
async function measureBeside(): Promise<Figure[]> {
  const requests = Array.from({ length: LIVE_PAYMENTS }, (_, n) => benchRequest(n))
  await createRequestRepository(knex).insertAll(account, requests)
  await using node = await startNode({ head: EMPTY_BLOCKS, events: 0, eventsABlock: 1, rangeMs: 100 })
  const config = benchConfig([node.url])
  const detection = openDetection(config)
  detection.start()
  const checks: number[] = []
  let half: number | undefined
  for (let head = EMPTY_BLOCKS; ; ) {
    const next = await lowestUnread()
    if (next === 'NONE') break
    if (next === undefined) continue
    if (next > EMPTY_BLOCKS / 2) half ??= heapMib()
    if (checks.length === LIVE_PAYMENTS) continue
    const payment = requests[checks.length]
    node.setHead(++head)
    await untilPaid(payment?.requestId ?? '')
    checks.push(await node.checks())
  }
  const end = heapMib()
  await detection.stop()
  console.error(`looks at the head until live payments were read, one each: ${checks.join(', ')}`)
  return [
    { name: 'live.polls', value: Math.max(...checks), unit: 'polls', target: { atMost: 1 } },
    { name: 'memory.growth', value: Math.max(0, end - (half ?? end)), unit: 'MiB', target: { atMost: 8 } },
  ]
}

/** Kills the process that follows the chain, and waits until the other stores a payment of a new block. */
async function measureTakeover(): Promise<Figure[]> {
  await forgetBench()
  const requests = Array.from({ length: TAKEOVERS + 1 }, (_, n) => benchRequest(n))
  await createRequestRepository(knex).insertAll(account, requests)
  await using node = await startNode({ head: 100, events: 0, eventsABlock: 1 })
  let follower = startFollower(node.url, 'follower 0')
  const seconds: number[] = []
  for (let nth = 0, head = 100; nth < TAKEOVERS; nth++) {
    node.setHead(++head)
    if (nth === 0) await untilPaid(requests[0]?.requestId ?? '')
    const other = startFollower(node.url, `follower ${nth + 1}`)
    await new Promise((resolve) => setTimeout(resolve, 3_000))
    follower.kill('SIGKILL')
    const killedMs = performance.now()
    node.setHead(++head)
    await untilOwned(`follower ${nth + 1}`)
    seconds.push((performance.now() - killedMs) / 1_000)
    follower = other
  }
  follower.kill('SIGKILL')
  console.error(`seconds until another process follows: ${seconds.map((each) => each.toFixed(1)).join(', ')}`)
  return [{ name: 'takeover.s', value: Math.max(...seconds), unit: 's', target: { atMost: 5 } }]
}

function startFollower(url: string, owner: string) {
  const script = join(import.meta.dirname, 'detection-follower.ts')
  // The socket's folder is open in this process alone, by a number.
  const connection = server.connection()
  const given = JSON.stringify({ url, owner, connection: { ...connection, host: realpathSync(connection.host) } })
  const child = spawn(process.execPath, [script, given], { stdio: ['ignore', 'ignore', 'inherit'] })
  stack.defer(() => void child.kill('SIGKILL'))
  return child
}

/** Waits until a process has read the newest block under its own lease. */
async function untilOwned(owner: string): Promise<void> {
  for (;;) {
    const { rows } = await knex.raw<{ rows: unknown[] }>(
      `select from leases, chain_state where owner = ? and scanned_block = head_block and updated_at > now() - interval '2 s'`,
      [owner],
    )
    if (rows.length > 0) return
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

/** The lowest block that back-fill has not read; undefined before it began, NONE once all is read. */
async function lowestUnread(): Promise<number | 'NONE' | undefined> {
  await new Promise((resolve) => setTimeout(resolve, 10))
  const { rows } = await knex.raw<{ rows: { next: bigint | null }[] }>(
    'select (select min(next_block) from chain_spans) as next from chain_state where start_block is not null',
  )
  const [at] = rows
  if (at === undefined) return undefined
  return at.next === null ? 'NONE' : Number(at.next)
}

async function untilPaid(requestId: string): Promise<void> {
  for (;;) {
    const found = await knex('payments')
      .where({ account_id: account.id, request_id: Buffer.from(requestId, 'hex') })
      .first('id')
    if (found !== undefined) return
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

async function forgetBench(): Promise<void> {
  await forgetChain(knex, { name: 'BENCH', chainId: caip2Of(BENCH_CHAIN_ID) }, new Date())
  await knex('leases').delete()
}

/** What is reachable, in MiB. */
function heapMib(): number {
  globalThis.gc?.()
  const { heapUsed, external } = process.memoryUsage()
  return (heapUsed + external) / 2 ** 20
}

function openDetection(config: ChainConfig) {
  return createDetection({
    knex,
    chains: createChainDirectory([config]),
    tokens: createTokenDirectory([config]),
    logger,
    clock: () => new Date(),
  })
}

async function storeRequests(pool: Knex, owner: Account): Promise<void> {
  const repository = createRequestRepository(pool)
  for (let from = 0; from < EVENTS; from += REQUESTS_AT_ONCE) {
    const length = Math.min(REQUESTS_AT_ONCE, EVENTS - from)
    await repository.insertAll(
      owner,
      Array.from({ length }, (_, index) => benchRequest(from + index)),
    )
  }
  // Nothing came before them. Statistics of both tables, as autovacuum makes them within a minute.
  await pool('pending_replays').delete()
  await pool.raw('vacuum analyze requests')
  await pool.raw('vacuum analyze reference_topics')
}

async function startNode(size: BenchSize) {
  const script = join(import.meta.dirname, 'detection-node.ts')
  const child = spawn(process.execPath, [script, JSON.stringify(size)], { stdio: ['pipe', 'pipe', 'inherit'] })
  const lines = createInterface(child.stdout)
  const [url] = (await once(lines, 'line')) as [string]
  let checks = Promise.withResolvers<number>()
  lines.on('line', (line) => checks.resolve(Number(line)))
  return {
    url,
    /** How often the head was asked for until the payment in the newest block was read. */
    async checks() {
      const count = await checks.promise
      checks = Promise.withResolvers()
      return count
    },
    setHead: (head: number) => child.stdin.write(`${head}\n`),
    async [Symbol.asyncDispose]() {
      child.stdin.end()
      await once(child, 'exit')
    },
  }
}
