/** A worker that hangs: its sockets stay open and nothing passes. A worker that is down: sharding.test.ts. `npm run test:citus` runs it. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Listener } from '../../../src/api/listener/listener.ts'
import { composeService } from '../../../src/app.ts'
import { issueApiKey } from '../../../src/auth/manage-keys.ts'
import { createApiKeyRepository } from '../../../src/auth/sql/api-key-repository.ts'
import type { Account } from '../../../src/domain/account.ts'
import { createDatabase } from '../../../src/postgres/knex.ts'
import { type WorkerWatch, watchWorkers } from '../../../src/postgres/sharding/lost-workers.ts'
import { createTestDatabase, type TestDatabase, urlOfDatabase } from '../../support/data/database.ts'
import { type SilentProxy, startSilentProxy } from '../../support/data/silent-proxy.ts'
import { testedServer } from '../../support/data/tested-server.ts'
import { silentLogger } from '../../support/logs.ts'
import { PATIENCE } from '../../support/patience.ts'
import { runCommand } from '../../support/run-command.ts'

const POOL_MAX = 6
const WATCH_CONNECTIONS = 4
const ACCOUNTS = 12
/** Two looks at a worker, each a second after the last and two seconds long, and the cancels of what hung. */
const KNOWN_AFTER_MS = 12_000

interface Shop {
  readonly account: Account
  readonly key: string
}

describe.skipIf(!testedServer.isCitus)('a worker that hangs', () => {
  let database: TestDatabase
  let listener: Listener
  let watch: WorkerWatch
  let frozen: SilentProxy
  const proxies: SilentProxy[] = []
  const lost: Shop[] = []
  const well: Shop[] = []

  beforeAll(async () => {
    const options = { poolMax: POOL_MAX, statementTimeoutMs: 60_000 }
    database = await createTestDatabase(options, {
      addressOf: async (worker) => {
        const proxy = await startSilentProxy(worker)
        proxies.push(proxy)
        return { host: proxy.host, port: proxy.port }
      },
    })
    const [first] = proxies
    if (first === undefined) throw new Error('the cluster has no workers')
    frozen = first
    const { knex } = database
    const repository = createApiKeyRepository(knex)
    for (let nth = 0; nth < ACCOUNTS; nth++) {
      const terms = { account: `shop${nth}`, scopes: ['payments:read', 'requests:read'], callsPerMinute: 0 } as const
      const { key, stored } = await issueApiKey(repository, { ...terms, now: new Date() })
      const { rows } = await knex.raw<{ rows: [{ port: number }] }>(
        `select nodeport as port from pg_dist_shard_placement
         where shardid = get_shard_id_for_distribution_column('payments', ?::int)`,
        [stored.account.id],
      )
      const group = rows[0].port === frozen.port ? lost : well
      group.push({ account: stored.account, key })
    }
    watch = watchWorkers(createDatabase(database.connection, { ...options, poolMax: WATCH_CONNECTIONS }), silentLogger)
    watch.start()
    const service = await composeService({
      knex,
      chains: [],
      logger: silentLogger,
      now: () => new Date(),
      lostServers: watch,
    })
    listener = await service.listen({ host: '127.0.0.1', port: 0 })
  })
  afterAll(async () => {
    for (const proxy of proxies) proxy.resume()
    await listener?.stop({ graceMs: 0 })
    await watch?.stop()
    await database?.drop()
    for (const proxy of proxies) await proxy.stop()
  })

  async function ask(path: string, { key }: Shop) {
    const startedAtMs = performance.now()
    const answer = await fetch(listener.url + path, { headers: { 'x-api-key': key } })
    await answer.text()
    return { status: answer.status, tookMs: performance.now() - startedAtMs }
  }
  const search = (shop: Shop) => ask('/payments', shop)
  /** Reads its account's rows without a slot. */
  const findRequest = (shop: Shop) => ask('/v1/request/0x0123456789abcdef', shop)

  it('makes its own accounts unavailable and no others, however many of them call', async () => {
    expect([lost.length > 1, well.length > 1]).toEqual([true, true])
    for (const shop of [...lost, ...well]) expect((await search(shop)).status).toBe(200)
    frozen.silence()
    const frozenAtMs = performance.now()
    const calls = lost.flatMap((shop) => [search(shop), search(shop), findRequest(shop), findRequest(shop)])
    const others: Awaited<ReturnType<typeof search>>[] = []
    const untilMs = frozenAtMs + KNOWN_AFTER_MS
    while (performance.now() < untilMs) {
      for (const shop of well) others.push(await search(shop))
    }
    expect(others.filter(({ status }) => status !== 200)).toEqual([])
    expect(Math.max(...others.map(({ tookMs }) => tookMs))).toBeLessThan(KNOWN_AFTER_MS)

    const ended = await Promise.all(calls)
    for (const { status, tookMs } of ended) {
      expect([503, 504]).toContain(status)
      expect(tookMs).toBeLessThan(KNOWN_AFTER_MS)
    }
    // from now on they are refused at once, and others do not notice
    for (const shop of lost) {
      const { status, tookMs } = await search(shop)
      expect(status).toBe(503)
      expect(tookMs).toBeLessThan(1_000)
    }
    for (const shop of well) {
      const { status, tookMs } = await search(shop)
      expect(status).toBe(200)
      expect(tookMs).toBeLessThan(2_000)
    }
  }, 120_000)

  it('is named by distribute, which does not end well', async () => {
    const { code, stderr } = await runCommand({ DATABASE_URL: urlOfDatabase(database) }, ['migrate', '--distribute'])
    expect(code).toBe(1)
    expect(stderr).toMatch(/^waybill migrate: the coordinator gets no answer from the worker 127\.0\.0\.1:\d+: /m)
    expect(stderr).not.toContain('select')
  }, 60_000)

  it('serves its accounts again when it goes on, and nothing is left of what hung', async () => {
    frozen.resume()
    for (const shop of lost) await expect.poll(async () => (await search(shop)).status, PATIENCE).toBe(200)
    for (const shop of well) expect((await search(shop)).status).toBe(200)
    const left = async () => {
      const { rows } = await database.knex.raw<{ rows: { name: string }[] }>(
        `select application_name as name from pg_stat_activity where datname = current_database() and application_name like 'waybill%'`,
      )
      return rows.length
    }
    await expect.poll(left, PATIENCE).toBeLessThanOrEqual(POOL_MAX + WATCH_CONNECTIONS)
    const { code } = await runCommand({ DATABASE_URL: urlOfDatabase(database) }, ['migrate', '--distribute'])
    expect(code).toBe(0)
  }, 60_000)
})
