import { rm } from 'node:fs/promises'
import type { Knex } from 'knex'
import { decodeEventLog, type Hex, keccak256, parseAbi, zeroAddress } from 'viem'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { formatAmount } from '../../src/domain/decimal.ts'
import type { EmbeddedServer } from '../../src/postgres/embedded/embedded-server.ts'
import { createDatabase } from '../../src/postgres/knex.ts'
import { migrate } from '../../src/postgres/migrations/migrate.ts'
import { startTestChain, type TestChain } from '../support/chains/chain.ts'
import {
  type Caller,
  freshAddress,
  type LifeService,
  type RequestJson,
  startLifeService,
} from '../support/chains/payment-life.ts'
import { startTestedServer } from '../support/data/tested-server.ts'
import { makeTempFolder } from '../support/temp-folder.ts'

const FINALITY = 6
const USDC_UNIT = 1_000_000n
/** The limit of every wait; everything together takes a few seconds. */
const PATIENCE = { timeout: 15_000, interval: 50 }

let dataDir: string
let server: EmbeddedServer
let knex: Knex
let chain: TestChain
let service: LifeService
let shop: Caller
let payers: Hex[]
let requests: RequestJson[]

const start = async () => {
  server = await startTestedServer({ dataDir, settings: { fsync: 'off' } })
}

beforeAll(async () => {
  dataDir = await makeTempFolder('payment-life')
  ;[chain] = await Promise.all([startTestChain({ chainId: 31_541, automine: false }), start()])
  knex = createDatabase(server.connection())
  await migrate(knex)
  // The time between two scans is half of it, and at least a quarter of a second.
  const config = { ...chain.config({ name: 'BASE', finalityDepth: FINALITY }), blockTimeSeconds: 0.5 }
  service = await startLifeService(knex, [config])
  shop = await service.caller('shop')
  payers = chain.wallets.slice(0, 3)
  for (const payer of payers) {
    await chain.fund(chain.tokens.USDC, payer, 10n ** 15n)
    await chain.approve(payer, chain.tokens.USDC, chain.contracts.erc20FeeProxy, 10n ** 15n)
  }
  requests = await Promise.all(
    Array.from({ length: 12 }, (_, index) =>
      shop.createRequest({ payee: freshAddress(`killed ${index}`), amount: '50' }),
    ),
  )
})
afterAll(async () => {
  await service?.stop()
  await knex?.destroy()
  await server?.stop()
  await chain?.stop()
  await rm(dataDir, { recursive: true, force: true })
})

/** Mines a block with a payment of each request, and with one that only looks like it. */
async function mineBlock(dollars: bigint): Promise<void> {
  for (const [index, request] of requests.entries()) {
    const spoofed = index === Number(dollars) % requests.length
    const payer = payers[index % payers.length] as Hex
    await chain.pay(payer, {
      kind: 'ERC20',
      token: chain.tokens.USDC.address,
      to: spoofed ? payer : request.payee,
      amount: dollars * USDC_UNIT,
      paymentReference: request.paymentReference,
      feeAddress: zeroAddress,
    })
  }
  await chain.mine()
}

const ABI = parseAbi([
  'event TransferWithReferenceAndFee(address tokenAddress, address to, uint256 amount, bytes indexed paymentReference, uint256 feeAmount, address feeAddress)',
])

/** Reads from the node the events of the proxy that pay one of the requests, and counts the others. */
async function eventsOnChain(): Promise<{ paying: string[]; others: number }> {
  type Log = { data: Hex; topics: [Hex, Hex]; transactionHash: Hex; blockNumber: Hex }
  const filter = { address: chain.contracts.erc20FeeProxy, fromBlock: '0x0', toBlock: 'latest' }
  const logs = await chain.client.rpc.call<Log[]>('eth_getLogs', [filter])
  const requestOf = new Map(requests.map((request) => [keccak256(request.paymentReference), request]))
  const paying = logs.flatMap(({ data, topics, transactionHash, blockNumber }) => {
    const { args } = decodeEventLog({ abi: ABI, data, topics })
    const request = requestOf.get(topics[1])
    const counts = args.to === request?.payee && args.tokenAddress === chain.tokens.USDC.address
    const amount = formatAmount(args.amount, 6)
    return counts ? [`${request.paymentReference} ${amount} ${transactionHash} ${BigInt(blockNumber)}`] : []
  })
  return { paying, others: logs.length - paying.length }
}

/** All payments that the service answers, page by page. */
async function storedPayments() {
  const payments: { paymentReference: string; amount: string; txHash: string; blockNumber: string; status: string }[] =
    []
  let cursor: string | undefined
  do {
    const { body } = await shop.call('GET', '/payments', { query: { limit: '100', ...(cursor && { cursor }) } })
    const page = body as { payments: typeof payments; pagination: { nextCursor?: string } }
    payments.push(...page.payments)
    cursor = page.pagination.nextCursor
  } while (cursor !== undefined)
  return payments
}

/** Kills the database when detection sends a statement that matches the pattern. */
function killAt(statement: RegExp): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>()
  const onQuery = ({ sql }: { sql: string }) => {
    if (!statement.test(sql)) return
    knex.off('query', onQuery)
    process.kill(server.pid, 'SIGKILL')
    resolve(sql)
  }
  knex.on('query', onQuery)
  return promise
}

/** Resolves when detection has read up to the head. */
async function caughtUp(): Promise<void> {
  const head = String((await chain.client.head()).number)
  await vi.waitFor(async () => expect((await shop.search({ limit: '1' })).asOf[0]?.block).toBe(head), PATIENCE)
}

it('loses no payment and stores none twice when the database is killed while payments are written', async () => {
  service.detection.start()
  await caughtUp()
  let dollars = 0n
  const kills = [
    // Few new payments go in by INSERT, many by COPY, after which their requests are settled.
    /^insert into "payments"|^\s*update requests set status/,
    /^update "chain_state"/,
    /^commit/i,
    /^insert into "chain_blocks"/,
    /^begin/i,
  ]
  for (const [index, statement] of kills.entries()) {
    const killed = killAt(statement)
    await mineBlock(++dollars)
    await mineBlock(++dollars)
    expect(await killed).toMatch(statement)
    await server.exited
    if (index === 0) {
      expect(await shop.reasonOf('/payments')).toEqual([503, 'DATABASE_UNAVAILABLE'])
      expect((await fetch(`${service.baseUrl}/readyz`)).status).toBe(503)
      expect((await fetch(`${service.baseUrl}/healthz`)).status).toBe(200)
    }
    // While the database is down the chain goes on, and once a reorg replaces a block that was being written.
    await mineBlock(++dollars)
    if (index === 2) await chain.reorg(2)
    await start()
    await caughtUp()
  }
  await chain.mine({ blocks: FINALITY })
  await caughtUp()
  const stored = await storedPayments()
  const { paying, others } = await eventsOnChain()
  expect(paying.length).toBeGreaterThan(100)
  const seen = stored.map((each) => `${each.paymentReference} ${each.amount} ${each.txHash} ${each.blockNumber}`)
  expect(seen.toSorted()).toEqual(paying.toSorted())
  expect(new Set(stored.map(({ status }) => status))).toEqual(new Set(['CONFIRMED']))
  for (const request of requests) {
    const own = stored.filter(({ paymentReference }) => paymentReference === request.paymentReference)
    const paid = own.reduce((sum, { amount }) => sum + Number(amount), 0)
    expect((await shop.request(request.paymentReference)).paidAmount).toBe(String(paid))
  }
  const { rows } = await knex.raw<{ rows: { reason: string; n: bigint }[] }>(
    'select reason, count(*) as n from unmatched_events group by reason',
  )
  expect(rows).toEqual([{ reason: 'WRONG_PAYEE', n: BigInt(others) }])
})
