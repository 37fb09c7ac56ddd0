/**
 * A service that is killed, and one whose pool is exhausted: no payment is lost or counted twice, calls fail at once with a reason, and the
 * service recovers without help.
 *
 * A database that is killed: payment-life-database.long.test.ts. Statements past their deadline: protocols.test.ts.
 */
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Knex } from 'knex'
import { decodeEventLog, type Hex, keccak256, parseAbi, zeroAddress } from 'viem'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Listener } from '../../src/api/listener/listener.ts'
import { composeService } from '../../src/app.ts'
import { issueApiKey } from '../../src/auth/manage-keys.ts'
import { createApiKeyRepository } from '../../src/auth/sql/api-key-repository.ts'
import type { Account } from '../../src/domain/account.ts'
import { formatAmount } from '../../src/domain/decimal.ts'
import type { PaymentRequest } from '../../src/domain/payment-request.ts'
import { dropLeases } from '../../src/store/leases-repository.ts'
import { startTestChain, type TestChain, type TestPayment } from '../support/chains/chain.ts'
import { freshAddress } from '../support/chains/payment-life.ts'
import { type Meddle, type RpcProxy, startRpcProxy } from '../support/chains/rpc-proxy.ts'
import { createTestDatabase, type TestDatabase, urlOfDatabase } from '../support/data/database.ts'
import { canonical, makeRequest, storeRequest } from '../support/detection.ts'
import { silentLogger } from '../support/logs.ts'
import { startWaybill, type WaybillProcess } from '../support/process.ts'
import { makeTempFolder } from '../support/temp-folder.ts'

const PATIENCE = { timeout: 10_000, interval: 50 }

async function newKey(knex: Knex): Promise<{ key: string; account: Account }> {
  const terms = { account: 'shop', scopes: ['payments:read'], now: new Date(), callsPerMinute: 0 } as const
  const { key, stored } = await issueApiKey(createApiKeyRepository(knex), terms)
  return { key, account: stored.account }
}

describe('a service that is killed while it reads the past of a chain', () => {
  /** The largest range of logs that the node answers, so that the past is read in many steps. */
  const MAX_RANGE = 7
  const BLOCKS = 24
  const PAYMENTS_A_BLOCK = 12

  let folder: string
  let chain: TestChain
  let proxy: RpcProxy
  let database: TestDatabase
  let key: string
  let requests: PaymentRequest[]
  let settings: Record<string, string>
  let service: WaybillProcess | undefined

  beforeAll(async () => {
    folder = await makeTempFolder('bad-days')
    ;[chain, database] = await Promise.all([
      startTestChain({ chainId: 31_581, automine: false }),
      createTestDatabase({ applicationName: 'test' }),
    ])
    proxy = await startRpcProxy(chain.rpcUrl)
    const made = await newKey(database.knex)
    key = made.key
    requests = Array.from({ length: PAYMENTS_A_BLOCK }, (_, n) =>
      makeRequest({ payee: canonical(freshAddress(`bad days ${n}`)), network: 'BASE' }),
    )
    for (const request of requests) await storeRequest(database.knex, made.account, request)
    await fillChain()
    const config = chain.config({ name: 'BASE', finalityDepth: 3 })
    const file = join(folder, 'chains.json')
    // The service polls after half the block time, but not more often than each quarter of a second.
    const followed = { ...config, rpcUrls: [proxy.url], blockTimeSeconds: 0.5 }
    await writeFile(file, JSON.stringify({ chains: [followed] }))
    settings = { DATA_DIR: join(folder, 'unused'), PORT: '0', CHAINS_FILE: file, DATABASE_URL: urlOfDatabase(database) }
  })
  afterAll(async () => {
    service?.kill('SIGKILL')
    await service?.ended
    await proxy?.stop()
    await chain?.stop()
    await database?.drop()
    await rm(folder, { recursive: true, force: true })
  })

  /** Payments of different amounts, single ones and several in one transaction, of which the middle one pays a stranger. */
  async function fillChain(): Promise<void> {
    const payers = chain.wallets.slice(0, 3)
    for (const payer of payers) {
      await chain.fund(chain.tokens.USDC, payer, 10n ** 15n)
      await chain.approve(payer, chain.tokens.USDC, chain.contracts.erc20FeeProxy, 10n ** 15n)
    }
    const [, , , stranger] = chain.wallets
    let amount = 1_000_000n
    const payment = ({ payee, paymentReference }: PaymentRequest, to: Hex = rawAddress(payee)): TestPayment => {
      const token = chain.tokens.USDC.address
      return { kind: 'ERC20', token, to, amount: ++amount, paymentReference, feeAddress: zeroAddress }
    }
    for (let block = 0; block < BLOCKS; block++) {
      for (const [n, request] of requests.entries()) await chain.pay(payers[n % 3] as Hex, payment(request))
      const [one, two] = [requests[block % requests.length], requests[(block + 1) % requests.length]]
      if (block % 4 === 0 && one && two) {
        await chain.payInOneTransaction(payers[0] as Hex, [payment(one), payment(one, stranger), payment(two)])
      }
      await chain.mine()
    }
  }

  type Log = { data: Hex; topics: [Hex, Hex]; transactionHash: Hex }
  const ABI = parseAbi([
    'event TransferWithReferenceAndFee(address tokenAddress, address to, uint256 amount, bytes indexed paymentReference, uint256 feeAmount, address feeAddress)',
  ])

  /** The events of the proxy that pay one of the requests, read directly from the node. */
  async function eventsOnChain(): Promise<string[]> {
    const filter = { address: chain.contracts.erc20FeeProxy, fromBlock: '0x0', toBlock: 'latest' }
    const logs = await chain.client.rpc.call<Log[]>('eth_getLogs', [filter])
    const requestOf = new Map(requests.map((request) => [keccak256(request.paymentReference), request]))
    return [...Map.groupBy(logs, ({ transactionHash }) => transactionHash).values()].flatMap((ofTransaction) =>
      ofTransaction.flatMap(({ data, topics, transactionHash }, eventIndex) => {
        const { args } = decodeEventLog({ abi: ABI, data, topics })
        const request = requestOf.get(topics[1])
        if (request === undefined || canonical(args.to) !== request.payee) return []
        return [`${request.paymentReference} ${formatAmount(args.amount, 6)} ${transactionHash} ${eventIndex}`]
      }),
    )
  }

  interface Page {
    readonly payments: readonly { paymentReference: Hex; amount: string; txHash: Hex; eventIndex: number }[]
    readonly pagination: { readonly nextCursor?: string }
  }

  /** Every payment that the service returns, page by page. */
  async function paymentsServed(url: string): Promise<string[]> {
    const served: string[] = []
    for (let query: string | undefined = 'limit=100'; query !== undefined; ) {
      const answer = await fetch(`${url}/payments?${query}`, { headers: { 'x-api-key': key } })
      expect(answer.status).toBe(200)
      const { payments, pagination } = (await answer.json()) as Page
      for (const { paymentReference, amount, txHash, eventIndex } of payments) {
        served.push(`${paymentReference} ${amount} ${txHash} ${eventIndex}`)
      }
      query = pagination.nextCursor && `cursor=${encodeURIComponent(pagination.nextCursor)}&limit=100`
    }
    return served
  }

  async function startService(): Promise<string> {
    service = startWaybill(['serve'], settings)
    const [, url = ''] = await service.says(/Waybill on (http:\S+):/)
    return url
  }

  async function killService(): Promise<void> {
    service?.kill('SIGKILL')
    expect(await service?.ended).toMatchObject({ signal: 'SIGKILL' })
  }

  /** Up to which block all is read. */
  const scannedBlock = async () => {
    const { rows } = await database.knex.raw<{ rows: { block: bigint | null }[] }>(
      `select coalesce((select min(next_block) - 1 from chain_spans), (select scanned_block from chain_state)) as block`,
    )
    return Number(rows[0]?.block ?? 0)
  }
  const stored = async () => ({
    scanned: await scannedBlock(),
    payments: (await database.knex('payments').select('id')).length,
    unmatched: (await database.knex('unmatched_events').select('topic')).length,
  })

  /** The node answers narrow ranges only. Calls `meet` once, before the answer to the third range with events: the first is written by then. */
  function atThirdRange(meet: () => Promise<void>): Meddle {
    let withEvents = 0
    return ({ method, params: [filter] }, ask) => {
      if (method !== 'eth_getLogs') return undefined
      const { fromBlock, toBlock } = filter as { fromBlock?: Hex; toBlock?: Hex }
      if (fromBlock === undefined || toBlock === undefined) return undefined
      if (Number(toBlock) - Number(fromBlock) >= MAX_RANGE) {
        return Promise.resolve({ rpcError: { code: -32_000, message: `block range is limited to ${MAX_RANGE}` } })
      }
      return ask().then(async (logs) => {
        if ((logs as Log[]).length > 0 && ++withEvents === 3) await meet()
        return logs
      })
    }
  }

  /** Resolves once the process waits for logs or for a receipt that the node never sends. */
  async function untilItAsksFor(what: 'LOGS' | 'RECEIPTS'): Promise<void> {
    const { promise: asked, resolve: onAsked } = Promise.withResolvers<void>()
    const never = new Promise<never>(() => {})
    let isDue = false
    const ranges = atThirdRange(async () => {
      isDue = true
      if (what === 'RECEIPTS') return
      onAsked()
      await never
    })
    proxy.meddle((call, ask) => {
      if (!isDue || call.method !== 'eth_getTransactionReceipt') return ranges(call, ask)
      onAsked()
      return never
    })
    await startService()
    await asked
  }

  /** Calls `body` while the process waits in the middle of a transaction, some rows of which it has written. */
  async function whileItWrites(body: () => Promise<void>): Promise<void> {
    const { promise: due, resolve: onDue } = Promise.withResolvers<void>()
    const { promise: locked, resolve: onLocked } = Promise.withResolvers<void>()
    proxy.meddle(
      atThirdRange(() => {
        onDue()
        return locked
      }),
    )
    await startService()
    await due
    await database.knex.transaction(async (trx) => {
      await trx.raw('lock table payments in share mode')
      onLocked()
      const waiting = async () => {
        // Not in this transaction, which would see the same activity each time.
        const { rows } = await database.knex.raw<{ rows: unknown[] }>(
          `select pid from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
             and (query like '%insert into "payments"%' or query like 'copy payments %')`,
        )
        return rows.length
      }
      await expect.poll(waiting, PATIENCE).toBe(1)
      await body()
    })
  }

  /** What the process had stored when it was killed. */
  async function afterTheKill() {
    // Another test covers the wait for the lease of a killed process. The statement waits until the open transaction was rolled back.
    await dropLeases(database.knex)
    return stored()
  }

  it('continues after three kills, and each paying event is one payment', async () => {
    const head = Number((await chain.client.head()).number)
    const left: Awaited<ReturnType<typeof stored>>[] = []

    await untilItAsksFor('LOGS')
    await killService()
    left.push(await afterTheKill())

    await untilItAsksFor('RECEIPTS')
    await killService()
    left.push(await afterTheKill())

    let before: Awaited<ReturnType<typeof stored>> | undefined
    await whileItWrites(async () => {
      before = await stored()
      await killService()
    })
    left.push(await afterTheKill())
    expect(left[2]).toEqual(before)

    const onChain = await eventsOnChain()
    let last = { scanned: 0, payments: 0 }
    for (const at of left) {
      expect(at.scanned).toBeGreaterThan(last.scanned)
      expect(at.scanned).toBeLessThan(head)
      expect(at.payments).toBeGreaterThan(last.payments)
      expect(at.payments).toBeLessThan(onChain.length)
      last = at
    }

    proxy.meddle(atThirdRange(async () => {}))
    const url = await startService()
    await expect.poll(scannedBlock, PATIENCE).toBe(head)
    expect(onChain).toHaveLength(BLOCKS * PAYMENTS_A_BLOCK + (BLOCKS / 4) * 2)
    expect(onChain.filter((event) => event.endsWith(' 2'))).toHaveLength(BLOCKS / 4)
    expect((await paymentsServed(url)).toSorted()).toEqual(onChain.toSorted())
    expect(await stored()).toEqual({ scanned: head, payments: onChain.length, unmatched: BLOCKS / 4 })
  }, 40_000)
})

/** The 20 bytes of an address of any chain. */
const rawAddress = (address: string): Hex => `0x${address.slice(-40)}`

describe('a service whose pool has no free connection', () => {
  const POOL_MAX = 8
  const ACQUIRE_MS = 200
  let database: TestDatabase
  let listener: Listener
  let keys: string[]

  beforeAll(async () => {
    database = await createTestDatabase({ poolMax: POOL_MAX, acquireTimeoutMs: ACQUIRE_MS })
    const { knex } = database
    keys = [(await newKey(knex)).key, (await newKey(knex)).key]
    const service = await composeService({ knex, chains: [], logger: silentLogger, now: () => new Date() })
    listener = await service.listen({ host: '127.0.0.1', port: 0 })
  })
  afterAll(async () => {
    await listener?.stop({ graceMs: 0 })
    await database?.drop()
  })

  const statusOf = async (path: string) => (await fetch(listener.url + path)).status

  async function search(key = '') {
    const startedAtMs = performance.now()
    const answer = await fetch(`${listener.url}/payments`, { headers: { 'x-api-key': key } })
    const { details } = (await answer.json()) as { details?: { reason: string }[] }
    const [reason, retryAfter] = [details?.[0]?.reason, answer.headers.get('retry-after')]
    return { status: answer.status, reason, retryAfter, tookMs: performance.now() - startedAtMs }
  }

  it('answers DATABASE_UNAVAILABLE at once, also to many calls and to a key that is not cached, and recovers', async () => {
    const [met, unmet] = keys
    expect(await search(met)).toMatchObject({ status: 200 })
    const holders = await Promise.all(Array.from({ length: POOL_MAX }, () => database.knex.transaction()))
    const crowd = await Promise.all([...Array.from({ length: 20 }, () => search(met)), search(unmet)])
    for (const { status, reason, retryAfter, tookMs } of crowd) {
      expect([status, reason, retryAfter]).toEqual([503, 'DATABASE_UNAVAILABLE', '5'])
      expect(tookMs).toBeLessThan(ACQUIRE_MS * 10)
    }
    expect([await statusOf('/healthz'), await statusOf('/readyz')]).toEqual([200, 503])

    await Promise.all(holders.map((trx) => trx.rollback()))
    expect(await search(unmet)).toMatchObject({ status: 200 })
    expect(await search(met)).toMatchObject({ status: 200 })
    expect(await statusOf('/readyz')).toBe(200)
  })
})
