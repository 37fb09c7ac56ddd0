import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { Readable } from 'node:stream'
import type { Hex } from 'viem'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { seededRandom } from '../../bench/search/seeded-random.ts'
import { importPayments } from '../../src/imports/import-payments.ts'
import { importLines } from '../../src/imports/lines/import-lines.ts'
import { startTestChain, type TestChain } from '../support/chains/chain.ts'
import {
  type Caller,
  freshAddress,
  type LifeService,
  type RequestJson,
  startLifeService,
} from '../support/chains/payment-life.ts'
import { createTestDatabase, type TestDatabase } from '../support/data/database.ts'

// examples/poll-changes.mjs copies payments while they are detected, imported, removed by reorgs and mined again, and is killed over and over.

const STEPS = 100
/** Few, so that a walk has many pages, between which payments change. */
const PAGE = 3

let database: TestDatabase
let chain: TestChain
let service: LifeService
let shop: Caller
let folder: string
let connector: ChildProcess | undefined

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'waybill-poll-'))
  ;[database, chain] = await Promise.all([createTestDatabase(), startTestChain({ chainId: 31_571, automine: false })])
  service = await startLifeService(database.knex, [chain.config({ name: 'BASE', finalityDepth: 6 })])
  shop = await service.caller('shop')
  await chain.fund(chain.tokens.USDC, chain.wallets[0], 10n ** 15n)
  await chain.approve(chain.wallets[0], chain.tokens.USDC, chain.contracts.erc20FeeProxy, 10n ** 15n)
})
afterAll(async () => {
  connector?.kill('SIGKILL')
  await service?.stop()
  await Promise.all([chain?.stop(), database?.drop()])
  rmSync(folder, { recursive: true, force: true })
})

const random = seededRandom(29)
const below = (n: number) => Math.floor(random() * n)
const pick = <T>(values: readonly T[]): T | undefined => values[below(values.length)]

test('a copy by polling ends equal to the database through kills, imports and reorgs', async () => {
  const first = Number((await chain.client.head()).number)
  const requests: RequestJson[] = []
  const hashes: Hex[] = []
  const imported: object[] = []
  const actions: Readonly<Record<string, () => Promise<void>>> = {
    async pay() {
      const request = await shop.createRequest({ payee: freshAddress(`polled ${requests.length}`), amount: '100' })
      requests.push(request)
      for (let nth = 0; nth <= below(3); nth++) {
        hashes.push(await pay(pick(requests) ?? request, 10 + below(60)))
      }
      await check()
    },
    check,
    async reorg() {
      const head = Number((await chain.client.head()).number)
      const depth = Math.min(1 + below(4), head - first)
      if (depth < 1) return
      const mined = await transactionsOfHead()
      await chain.reorg(
        depth,
        mined.slice(0, below(mined.length + 1)).map((hash) => ({ hash })),
      )
      await check()
    },
    async importNew() {
      for (let nth = 0; nth <= below(6); nth++) {
        const hash = random() < 0.5 ? pick(hashes) : undefined
        const request = random() < 0.5 ? pick(requests) : undefined
        imported.push(lineOf({ id: randomUUID(), hash, request }))
      }
      await storeLines(imported.slice(-6))
    },
    // with a later time they replace what is stored, else they change nothing
    async importAgain() {
      const line = pick(imported)
      if (line !== undefined) await storeLines([{ ...line, amount: String(1 + below(90)), updatedAt: later() }, line])
    },
    async kill() {
      await stopConnector()
      startConnector()
    },
  }
  startConnector()
  for (let step = 0; step < STEPS; step++) await (pick(Object.values(actions)) as () => Promise<void>)()
  // one that was killed in the middle of a walk goes on, and what was removed in between is reported
  await stopConnector()
  await chain.reorg(2)
  await check()
  startConnector()
  await expect.poll(copied, { timeout: 20_000 }).toEqual(await stored())

  const { rows } = await database.knex.raw<{ rows: [{ removed: bigint; kinds: bigint }] }>(
    'select (select count(*) from removed_payments) as removed, (select count(distinct kind) from payment_changes where payment_id is not null) as kinds',
  )
  expect(Number(rows[0].removed)).toBeGreaterThan(5)
  expect(rows[0].kinds).toBe(3n)
  expect((await stored()).size).toBeGreaterThan(20)
}, 60_000)

async function pay({ payee, paymentReference }: RequestJson, dollars: number): Promise<Hex> {
  const token = chain.tokens.USDC.address
  const terms = { kind: 'ERC20', token, to: payee, amount: BigInt(dollars) * 1_000_000n } as const
  return (await chain.pay(chain.wallets[0], { ...terms, paymentReference })).transactionHash
}

async function check(): Promise<void> {
  await chain.mine({ blocks: 1 + below(2) })
  await service.scan()
}

async function transactionsOfHead(): Promise<readonly Hex[]> {
  const block = await chain.client.rpc.call<{ transactions: Hex[] }>('eth_getBlockByNumber', ['latest', false])
  return block.transactions
}

let seconds = 0
const later = () => new Date(Date.now() + seconds++ * 1_000).toISOString()

interface LineTerms {
  readonly id: string
  readonly hash: Hex | undefined
  readonly request: RequestJson | undefined
}

function lineOf({ id, hash, request }: LineTerms): object {
  return {
    id,
    status: pick(['CONFIRMED', 'PENDING', 'FAILED']),
    timestamp: new Date(1_770_000_000_000 + below(1e9) * 1_000).toISOString(),
    updatedAt: later(),
    amount: '40',
    currency: 'USDC-BASE',
    network: 'BASE',
    ...(hash && { txHash: hash }),
    ...(request && { requestId: request.requestId }),
  }
}

async function storeLines(lines: readonly object[]): Promise<void> {
  const text = lines.map((line) => JSON.stringify(line)).join('\n')
  const account = { id: shop.accountId, name: 'shop' }
  const { bad } = await importLines(Readable.from([Buffer.from(text)]), importPayments(database.knex, account))
  expect(bad).toBe(0)
}

function startConnector(): void {
  const env = { WAYBILL_URL: service.baseUrl, WAYBILL_KEY: shop.key, POLL_SECONDS: '0.02', PAGE: String(PAGE) }
  const program = [join(import.meta.dirname, '../../examples/poll-changes.mjs'), join(folder, 'copy.db')]
  connector = spawn(process.execPath, program, { env: { ...process.env, ...env }, stdio: 'ignore' })
}

/** Kills it after a while, wherever it is. */
async function stopConnector(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, below(200)))
  if (connector === undefined) return
  const gone = once(connector, 'exit')
  connector.kill('SIGKILL')
  await gone
}

/** Confirmations grow with every block, which changes no payment. */
function withoutConfirmations(payment: { readonly id: string }) {
  return [payment.id, { ...payment, confirmations: undefined }] as const
}

function copied(): Map<string, object> {
  const copy = new DatabaseSync(join(folder, 'copy.db'), { readOnly: true })
  const rows = copy.prepare('select payment from payments').all()
  copy.close()
  return new Map(rows.map(({ payment }) => withoutConfirmations(JSON.parse(String(payment)))))
}

async function stored(): Promise<Map<string, object>> {
  const all: { readonly id: string }[] = []
  for (let cursor = ''; ; ) {
    const query = cursor === '' ? { limit: '100' } : { cursor }
    const { body } = await shop.call('GET', '/v1/payments', { query })
    const page = body as { payments: { id: string }[]; pagination: { hasMore: boolean; nextCursor: string } }
    all.push(...page.payments)
    if (!page.pagination.hasMore) return new Map(all.map(withoutConfirmations))
    cursor = page.pagination.nextCursor
  }
}
