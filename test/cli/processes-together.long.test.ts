/**
 * Several processes of the service on one database are one service: each accepts what another created, one at a time follows a chain, and
 * when that one dies another takes over.
 */
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Hex } from 'viem'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { RequestsService } from '../../gen/payments/v1/requests_service_pb.js'
import { composeService } from '../../src/app.ts'
import { issueApiKey } from '../../src/auth/manage-keys.ts'
import { createApiKeyRepository } from '../../src/auth/sql/api-key-repository.ts'
import { createDatabase } from '../../src/postgres/knex.ts'
import { MIGRATIONS } from '../../src/postgres/migrations/list.ts'
import { pendingMigrations } from '../../src/postgres/migrations/migrate.ts'
import { startTestChain, type TestChain } from '../support/chains/chain.ts'
import { type RpcProxy, startRpcProxy } from '../support/chains/rpc-proxy.ts'
import { watchBy } from '../support/clients/watch-clients.ts'
import { createEmptyDatabase, createTestDatabase, type TestDatabase, urlOfDatabase } from '../support/data/database.ts'
import { seedPayments, type Values } from '../support/data/seed-payments.ts'
import { revokeKey } from '../support/keys.ts'
import { recordLogs } from '../support/logs.ts'
import { runWaybill, startWaybill, type WaybillProcess } from '../support/process.ts'
import { NOW, startTestService, type TestService } from '../support/service.ts'
import { makeTempFolder } from '../support/temp-folder.ts'

/** The fields of answers that these tests read. */
interface Answer {
  readonly requestId: string
  readonly paymentReference: Hex
  readonly payments?: readonly { readonly id: string; readonly txHash: Hex }[]
  readonly requests?: readonly { readonly requestId: string; readonly overpaidAmount: string }[]
  readonly pagination: { readonly nextCursor?: string; readonly prevCursor?: string }
  readonly details?: readonly { readonly reason: string }[]
}

/** A call with a key, as JSON. */
async function call(
  url: string,
  key: string,
  { path, body, headers }: CallTerms,
): Promise<{ status: number; json: Answer }> {
  const answer = await fetch(url + path, {
    ...(body && { method: 'POST', body: JSON.stringify(body) }),
    headers: { 'x-api-key': key, 'content-type': 'application/json', ...headers },
  })
  return { status: answer.status, json: (await answer.json()) as Answer }
}

interface CallTerms {
  readonly path: string
  readonly body?: object
  readonly headers?: Readonly<Record<string, string>>
}

describe('two services on one database', () => {
  let first: TestService
  let second: { readonly url: string; stop(): Promise<void> }
  let values: Values

  beforeAll(async () => {
    first = await startTestService()
    values = await seedPayments(first)
    second = await startBeside(first)
  })
  afterAll(async () => {
    await second?.stop()
    await first?.stop()
  })

  const urls = () => [first.url, second.url]

  it.each(['/payments?limit=2', '/payments?limit=2&sortBy=amount&sortOrder=asc', '/v1/request?limit=2'])(
    'page through %s with the cursors of one another',
    async (path) => {
      const ids = ({ payments = [], requests = [] }: Answer) => [
        ...payments.map(({ id }) => id),
        ...requests.map(({ requestId }) => requestId),
      ]
      const base = path.slice(0, path.indexOf('?'))
      const page = async (round: number, target: string) =>
        (await call(urls()[round % 2] ?? '', first.keys.shop, { path: target })).json
      const forth: string[][] = []
      let at = await page(0, path)
      for (let round = 1; ; round++) {
        forth.push(ids(at))
        if (at.pagination.nextCursor === undefined) break
        at = await page(round, `${base}?cursor=${encodeURIComponent(at.pagination.nextCursor)}`)
      }
      const back: string[][] = [ids(at)]
      for (let round = 1; at.pagination.prevCursor !== undefined; round++) {
        at = await page(round, `${base}?cursor=${encodeURIComponent(at.pagination.prevCursor)}`)
        back.unshift(ids(at))
      }
      const whole = await page(0, path.replace('limit=2', 'limit=100'))
      expect(forth.length).toBeGreaterThan(3)
      expect(forth.flat()).toEqual(ids(whole))
      expect(back.flat()).toEqual(ids(whole))
    },
  )

  it('accept a key of the other process at once, and refuse it within 5 seconds after its revocation', async () => {
    const repository = createApiKeyRepository(first.database.knex)
    const { key, stored } = await issueApiKey(repository, { account: 'shop', scopes: ['payments:read'], now: NOW })
    const statuses = () => Promise.all(urls().map(async (url) => (await call(url, key, { path: '/payments' })).status))
    expect(await statuses()).toEqual([200, 200])
    await revokeKey(repository, stored.id, NOW)
    const revokedAtMs = performance.now()
    let lastServedAtMs = revokedAtMs
    const check = async () => {
      const beganAtMs = performance.now()
      const found = await statuses()
      if (found.includes(200)) lastServedAtMs = beganAtMs
      return found
    }
    await expect.poll(check).toEqual([401, 401])
    expect(lastServedAtMs - revokedAtMs).toBeLessThan(5_000)
  })

  it('store one request for one idempotency key, also when both are called at the same time', async () => {
    const terms = {
      payee: values['payee'],
      amount: '3',
      invoiceCurrency: 'USDC',
      paymentCurrency: 'USDC',
      network: 'ETHEREUM',
    }
    const create = (url: string, body: object) =>
      call(url, first.keys.shop, {
        path: '/v1/request',
        body,
        headers: { 'idempotency-key': 'together-1' },
      })
    const made = await Promise.all([...urls(), ...urls(), ...urls()].map((url) => create(url, terms)))
    expect(made.map(({ status }) => status)).toEqual(made.map(() => 200))
    expect(new Set(made.map(({ json }) => json.requestId)).size).toBe(1)
    const other = await create(second.url, { ...terms, amount: '4' })
    expect([other.status, other.json.details?.[0]?.reason]).toEqual([409, 'IDEMPOTENCY_KEY_REUSED'])
  })

  it('agree on which terms of a request came first', async () => {
    const requestId = `01${'7e'.repeat(32)}`
    const terms = {
      payee: values['payee'],
      invoiceCurrency: 'USDC',
      paymentCurrency: 'USDC',
      network: 'ETHEREUM',
      requestId,
    }
    const made = await Promise.all(
      urls().map((url, n) =>
        call(url, first.keys.shop, { path: '/v1/request', body: { ...terms, amount: `${n + 1}` } }),
      ),
    )
    expect(made.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 409])
    const stored = first.database.knex('requests').where({ request_id: Buffer.from(requestId, 'hex') })
    expect(await stored).toHaveLength(1)
  })
})

/** Starts a second service on the database of another, with its own pool. */
async function startBeside({ database, chain }: TestService) {
  const knex = createDatabase(database.connection)
  const chains = [chain.config({ name: 'ETHEREUM', finalityDepth: 3 })]
  const service = await composeService({ knex, chains, logger: recordLogs(), now: () => NOW })
  const listener = await service.listen({ host: '127.0.0.1', port: 0 })
  return {
    url: listener.url,
    async stop() {
      await listener.stop({ graceMs: 0 })
      await knex.destroy()
    },
  }
}

describe('processes that start at once on an empty database', () => {
  let database: TestDatabase
  beforeAll(async () => {
    database = await createEmptyDatabase('')
  })
  afterAll(() => database?.drop())

  it('run each migration once, and all of them serve', async () => {
    const settings = { PORT: '0', CHAINS_FILE: 'none', DATABASE_URL: urlOfDatabase(database), DATA_DIR: '/nowhere' }
    const commands = Array.from({ length: 3 }, () => runWaybill(['migrate'], settings))
    const service = startWaybill(['serve'], settings)
    try {
      const ended = await Promise.all(commands)
      expect(ended.map(({ code, stderr }) => [code, stderr])).toEqual(ended.map(() => [0, expect.any(String)]))
      const [, url = ''] = await service.says(/Waybill on (http:\S+):/)
      expect((await fetch(`${url}/readyz`)).status).toBe(200)
      const names = MIGRATIONS.map(({ name }) => name)
      const ran = ended.flatMap(({ stdout }) => stdout.split('\n').filter((line) => line !== ''))
      // The service ran the migrations that are missing here.
      expect(new Set(ran).size).toBe(ran.length)
      expect(names).toEqual(expect.arrayContaining(ran))
      expect(await pendingMigrations(database.knex)).toEqual([])
    } finally {
      service.kill('SIGKILL')
      await service.ended
    }
  })
})

describe('processes that follow the same chains', () => {
  /** How long a chain can stay with a killed process, and time for the other to notice. */
  const TAKEOVER = { timeout: 36_000, interval: 100 }
  const PATIENCE = { timeout: 10_000, interval: 100 }
  const NETWORKS = ['BASE', 'POLYGON'] as const

  interface Follower {
    readonly process: WaybillProcess
    readonly url: string
    /** A proxy before each chain, which records the calls of this process. */
    readonly proxies: readonly RpcProxy[]
  }

  let folder: string
  let database: TestDatabase
  let key: string
  const chains: TestChain[] = []
  const followers: Follower[] = []
  const paid: Hex[] = []

  beforeAll(async () => {
    folder = await makeTempFolder('together')
    database = await createTestDatabase()
    chains.push(...(await Promise.all(NETWORKS.map((_, n) => startTestChain({ chainId: 31_571 + n, addressSeed: n })))))
    const scopes = 'payments:read,requests:read,requests:write'
    // Without a limit of calls, because the test polls.
    const words = ['keys', 'create', '--account', 'shop', '--scopes', scopes, '--rate', '0']
    const made = await runWaybill(words, settings())
    key = made.stdout.trim()
  })
  afterAll(async () => {
    for (const { process, proxies } of followers) {
      process.kill('SIGKILL')
      await process.ended
      await Promise.all(proxies.map((proxy) => proxy.stop()))
    }
    await Promise.all(chains.map((chain) => chain.stop()))
    await database?.drop()
    await rm(folder, { recursive: true, force: true })
  })

  const settings = () => ({
    PORT: '0',
    DATABASE_URL: urlOfDatabase(database),
    DATA_DIR: join(folder, 'unused'),
    CHAINS_FILE: 'none',
  })

  async function startFollower(): Promise<Follower> {
    const proxies = await Promise.all(chains.map((chain) => startRpcProxy(chain.rpcUrl)))
    const configs = chains.map((chain, n) => ({
      ...chain.config({ name: NETWORKS[n] ?? '', finalityDepth: 3 }),
      rpcUrls: [proxies[n]?.url],
      blockTimeSeconds: 0.5,
    }))
    const file = join(folder, `chains-${followers.length}.json`)
    await writeFile(file, JSON.stringify({ chains: configs }))
    const process = startWaybill(['serve'], { ...settings(), CHAINS_FILE: file })
    const [, url = ''] = await process.says(/Waybill on (http:\S+):/)
    const follower = { process, url, proxies }
    followers.push(follower)
    return follower
  }

  /** How often each process has asked for the head of a chain, which only its follower does. */
  const reads = (chain: number, all: readonly Follower[]) =>
    all.map(({ proxies }) => {
      const isScan = ({ method, params }: { method: string; params: readonly unknown[] }) =>
        method === 'eth_getBlockByNumber' && params[0] === 'latest'
      return proxies[chain]?.calls.filter(isScan).length ?? 0
    })

  async function whoFollows(chain: number, all: readonly Follower[]): Promise<Follower> {
    const before = reads(chain, all)
    const grown = () => reads(chain, all).map((checks, n) => checks - (before[n] ?? 0))
    await expect.poll(() => Math.max(...grown()), PATIENCE).toBeGreaterThanOrEqual(4)
    const holders = all.filter((_, n) => (grown()[n] ?? 0) > 0)
    expect(holders).toHaveLength(1)
    return holders[0] as Follower
  }

  /** Who follows each chain. */
  const everyFollower = (all: readonly Follower[]) => Promise.all(chains.map((_, n) => whoFollows(n, all)))

  const newRequest = async (url: string, chain: number): Promise<Hex> => {
    const terms = { payee: chains[chain]?.wallets[5], amount: '10', invoiceCurrency: 'USDC', paymentCurrency: 'USDC' }
    const body = { ...terms, network: NETWORKS[chain] }
    const { json } = await call(url, key, { path: '/v1/request', body })
    return json.paymentReference
  }

  const pay = async (on: number, paymentReference: Hex): Promise<Hex> => {
    const chain = chains[on] as TestChain
    const [payer, , , , , payee] = chain.wallets
    const token = chain.tokens.USDC
    await chain.fund(token, payer, 10_000000n)
    const terms = { kind: 'ERC20', token: token.address, to: payee, amount: 10_000000n, paymentReference } as const
    return (await chain.pay(payer, terms)).transactionHash
  }

  /** The states of a request that each process tells, of which one alone finds the payment. */
  async function statesReportedBy(all: readonly Follower[]): Promise<string[][]> {
    const paymentReference = await newRequest(all[0]?.url ?? '', 0)
    const watches = all.map(({ url }) => {
      const states: string[] = []
      const begun = Promise.withResolvers<void>()
      const ended = watchBy('JSON lines', {
        url,
        method: RequestsService.method.watchPaymentRequest,
        request: { paymentReference },
        headers: { 'x-api-key': key },
        onMessage({ request }) {
          if (request !== undefined) states.push((request as { status: string }).status)
          begun.resolve()
          return states.length < 2 ? 'go on' : 'hang up'
        },
      })
      return { begun: begun.promise, states: ended.then(() => states) }
    })
    await Promise.all(watches.map(({ begun }) => begun))
    paid.push(await pay(0, paymentReference))
    return Promise.all(watches.map(({ states }) => states))
  }

  const hashesAt = async (url: string): Promise<Hex[]> => {
    const { status, json } = await call(url, key, { path: '/payments?limit=100' })
    if (status !== 200) throw new Error(JSON.stringify(json))
    return (json.payments ?? []).map(({ txHash }) => txHash).toSorted()
  }

  it('follow each chain one at a time; when one is killed the other takes over within the lease, and no payment is doubled or lost', async () => {
    const both = [await startFollower(), await startFollower()]
    const [one, two] = both as [Follower, Follower]
    await everyFollower(both)

    const payOnAll = async (url: string) => {
      for (const n of chains.keys()) paid.push(await pay(n, await newRequest(url, n)))
    }
    // Requests that one stores are paid on chains that perhaps the other follows.
    for (const { url } of [one, two, one, two]) await payOnAll(url)
    for (const { url } of both) await expect.poll(() => hashesAt(url), PATIENCE).toEqual(paid.toSorted())

    expect(await statesReportedBy(both)).toEqual(both.map(() => ['OPEN', 'PENDING']))

    const holder = await whoFollows(0, both)
    const survivor = holder === one ? two : one
    await payOnAll(survivor.url)
    holder.process.kill('SIGKILL')
    expect(await holder.process.ended).toMatchObject({ signal: 'SIGKILL' })
    const diedAtMs = performance.now()
    for (let n = 0; n < 3; n++) await payOnAll(survivor.url)
    await expect.poll(() => hashesAt(survivor.url), TAKEOVER).toEqual(paid.toSorted())
    expect(performance.now() - diedAtMs).toBeLessThan(5_000)
    expect(await everyFollower([survivor])).toEqual(chains.map(() => survivor))

    // On SIGTERM a process releases its chains, so that no other waits for its leases to expire.
    const third = await startFollower()
    expect(await everyFollower([survivor, third])).toEqual(chains.map(() => survivor))
    survivor.process.kill('SIGTERM')
    expect(await survivor.process.ended).toMatchObject({ code: 0 })
    await payOnAll(third.url)
    await expect.poll(() => hashesAt(third.url), PATIENCE).toEqual(paid.toSorted())

    const rows = await database.knex('payments').select('account_id', 'tx_hash', 'event_index')
    expect(rows).toHaveLength(paid.length)
    const { json } = await call(third.url, key, { path: '/v1/request?limit=100' })
    expect(json.requests).toHaveLength(paid.length)
    for (const { overpaidAmount } of json.requests ?? []) expect(overpaidAmount).toBe('0')
  }, 120_000)
})
