/**
 * A part of the whole that hangs: a chain's node, the database's first process, all of the database. Its processes are stopped by SIGSTOP and go on
 * later. One connection of the database: test/api/frozen-database.test.ts. A replica: test/postgres/replicas.long.test.ts. LI.FI: test/routing/lifi.test.ts. A
 * worker of Citus: test/postgres/citus/frozen.test.ts.
 */
import { rm } from 'node:fs/promises'
import type { Knex } from 'knex'
import { type Hex, zeroAddress } from 'viem'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { Listener } from '../../src/api/listener/listener.ts'
import { composeService, type Service } from '../../src/app.ts'
import { issueApiKey } from '../../src/auth/manage-keys.ts'
import { createApiKeyRepository } from '../../src/auth/sql/api-key-repository.ts'
import { NoAnswerError } from '../../src/postgres/database-error.ts'
import { type EmbeddedServer, joinEmbeddedServer } from '../../src/postgres/embedded/embedded-server.ts'
import { createDatabase } from '../../src/postgres/knex.ts'
import { migrate } from '../../src/postgres/migrations/migrate.ts'
import { startTestChain, type TestChain } from '../support/chains/chain.ts'
import { freshAddress } from '../support/chains/payment-life.ts'
import { clientPids, fillPool, freeze } from '../support/data/freeze.ts'
import { startTestedServer } from '../support/data/tested-server.ts'
import { silentLogger } from '../support/logs.ts'
import { PATIENCE } from '../support/patience.ts'
import { makeTempFolder } from '../support/temp-folder.ts'

const POOL_MAX = 6
/** What a caller of these tests waits. */
const TIMEOUT_MS = 4_000

let dataDir: string
let server: EmbeddedServer
let knex: Knex
let chain: TestChain
let service: Service
let listener: Listener
let key: string
let thaw = () => {}

beforeAll(async () => {
  dataDir = await makeTempFolder('frozen-parts')
  ;[server, chain] = await Promise.all([
    startTestedServer({ dataDir, settings: { fsync: 'off' } }),
    startTestChain({ chainId: 31_577 }),
  ])
  knex = createDatabase(server.connection(), { poolMax: POOL_MAX, statementTimeoutMs: 60_000 })
  await migrate(knex)
  const terms = {
    account: 'shop',
    scopes: ['payments:read', 'requests:read', 'requests:write', 'routes:read'],
  } as const
  key = (await issueApiKey(createApiKeyRepository(knex), { ...terms, now: new Date(), callsPerMinute: 0 })).key
  const chains = [{ ...chain.config({ name: 'BASE', finalityDepth: 1 }), blockTimeSeconds: 0.5 }]
  service = await composeService({ knex, chains, logger: silentLogger, now: () => new Date() })
  service.detection.start()
  listener = await service.listen({ host: '127.0.0.1', port: 0 })
})
afterEach(() => thaw())
afterAll(async () => {
  await listener?.stop({ graceMs: 0 })
  await service?.detection.stop()
  await knex?.destroy()
  await server?.stop()
  await chain?.stop()
  await rm(dataDir, { recursive: true, force: true })
})

interface RequestBody {
  readonly payee: Hex
  readonly paymentReference: Hex
}

/** What these tests read of answers. */
interface Body extends RequestBody {
  readonly payments: readonly { readonly paymentReference: Hex }[]
  readonly degraded?: boolean
}

async function call(method: string, request: object) {
  const startedAtMs = performance.now()
  const headers = {
    'x-api-key': key,
    'content-type': 'application/json',
    'connect-protocol-version': '1',
    'connect-timeout-ms': String(TIMEOUT_MS),
  }
  const init = { method: 'POST', headers, body: JSON.stringify(request) }
  const answer = await fetch(`${listener.url}/payments.v1.${method}`, init)
  return { status: answer.status, body: (await answer.json()) as Body, tookMs: performance.now() - startedAtMs }
}

const search = () => call('PaymentSearchService/SearchPayments', {})
const routesOf = ({ paymentReference }: RequestBody) =>
  call('RoutesService/GetPaymentRoutes', { paymentReference, wallet: chain.wallets[0] })

async function createRequest(name: string): Promise<RequestBody> {
  const terms = { payee: freshAddress(name), amount: '5', invoiceCurrency: 'USDC-BASE', paymentCurrency: 'USDC-BASE' }
  const { status, body } = await call('RequestsService/CreatePaymentRequest', terms)
  expect(status).toBe(200)
  return body
}

async function pay({ payee, paymentReference }: RequestBody): Promise<void> {
  const [payer] = chain.wallets
  await chain.fund(chain.tokens.USDC, payer, 5_000_000n)
  const token = chain.tokens.USDC.address
  await chain.pay(payer, {
    kind: 'ERC20',
    token,
    to: payee,
    amount: 5_000_000n,
    paymentReference,
    feeAddress: zeroAddress,
  })
}

async function expectFound({ paymentReference }: RequestBody): Promise<void> {
  const references = async () => (await search()).body.payments.map((payment) => payment.paymentReference)
  await expect.poll(references, PATIENCE).toContain(paymentReference)
}

const statusOf = async (path: string) => (await fetch(listener.url + path)).status

describe('a node that hangs', () => {
  it('costs the routes of its chain, in time, and its payments until it goes on', async () => {
    const request = await createRequest('frozen node')
    expect((await routesOf(request)).body.degraded).not.toBe(true)
    thaw = freeze([chain.pid])
    const routes = await routesOf(request)
    expect([routes.status, routes.body.degraded]).toEqual([200, true])
    expect(routes.tookMs).toBeLessThan(TIMEOUT_MS + 1_000)
    expect((await search()).status).toBe(200)
    expect([await statusOf('/healthz'), await statusOf('/readyz')]).toEqual([200, 200])
    const more = await createRequest('frozen node, more')
    thaw()
    await pay(more)
    await expectFound(more)
    await expect.poll(async () => (await routesOf(request)).body.degraded ?? false, { timeout: 60_000 }).toBe(false)
  }, 90_000)
})

describe('a database server', () => {
  it('of which only the first process hangs, serves on the connections that are open', async () => {
    await fillPool(knex)
    thaw = freeze([server.pid])
    for (let nth = 0; nth < 5; nth++) expect((await search()).status).toBe(200)
    expect(await statusOf('/readyz')).toBe(200)
    thaw()
    expect((await search()).status).toBe(200)
  })

  it('that hangs whole fails calls in time, and everything goes on with it', async () => {
    const request = await createRequest('frozen database')
    const pids = await clientPids(knex)
    thaw = freeze([server.pid, ...pids, ...(await fillPool(knex))])
    const calls = await Promise.all(Array.from({ length: 2 * POOL_MAX }, search))
    for (const { status, tookMs } of calls) {
      // TOO_MANY_AT_ONCE, DATABASE_UNAVAILABLE, DEADLINE_EXCEEDED
      expect([429, 503, 504]).toContain(status)
      expect(tookMs).toBeLessThan(TIMEOUT_MS + 1_000)
    }
    const askedAtMs = performance.now()
    expect(await statusOf('/readyz')).toBe(503)
    expect(performance.now() - askedAtMs).toBeLessThan(5_000)
    expect(await statusOf('/healthz')).toBe(200)
    // as a command does
    await expect(joinEmbeddedServer(dataDir)).rejects.toThrow(NoAnswerError)
    thaw()
    await expect.poll(async () => (await search()).status, PATIENCE).toBe(200)
    await expect.poll(() => statusOf('/readyz'), PATIENCE).toBe(200)
    await pay(request)
    await expectFound(request)
    await expect.poll(async () => (await clientPids(knex)).length, PATIENCE).toBeLessThan(POOL_MAX)
  }, 60_000)
})
