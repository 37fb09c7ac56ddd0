/**
 * Measures imports of payments into the embedded database with all its indexes: a file of new payments into an empty account, the same
 * file again, which changes nothing, and a file that changes the status of every payment. Also the export, and the peak memory.
 *
 *   npm run bench:import -- --rows 1000000
 *   npm run bench:import -- --rows 1000000 --pairs 3      each payment with three pairs of metadata, one of them its own
 */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createReadStream, createWriteStream } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { createApiKeyRepository } from '../src/auth/sql/api-key-repository.ts'
import type { Address } from '../src/domain/address.ts'
import type { DecimalString } from '../src/domain/decimal.ts'
import type { Payment } from '../src/domain/payment.ts'
import { formatPaymentLine } from '../src/domain/payment-line.ts'
import { importPayments } from '../src/imports/import-payments.ts'
import { importLines } from '../src/imports/lines/import-lines.ts'
import { openEmbeddedServer } from '../src/postgres/embedded/embedded-server.ts'
import { createDatabase } from '../src/postgres/knex.ts'
import { migrate } from '../src/postgres/migrations/migrate.ts'
import { exportPayments } from '../src/search/export/export-payments.ts'
import { meterCpu } from './cpu-seconds.ts'
import { type Figure, report } from './report.ts'

const { values } = parseArgs({
  options: { rows: { type: 'string', default: '200000' }, pairs: { type: 'string', default: '0' } },
})
const ROWS = Number(values.rows)
const PAIRS = Number(values.pairs)
const MIB = 1024 * 1024
const NETWORKS = ['BASE', 'POLYGON', 'ARBITRUM', 'ETHEREUM', 'OPTIMISM', 'BSC', 'AVALANCHE', 'LINEA', 'CELO', 'GNOSIS']
const SYMBOLS = ['USDC', 'USDT', 'DAI', 'ETH']

const folder = await mkdtemp(join(tmpdir(), 'waybill-import-'))
await using stack = new AsyncDisposableStack()
stack.defer(() => rm(folder, { recursive: true }))
const file = join(folder, 'payments.ndjson')
await writeLines(file)
const server = await openEmbeddedServer({ dataDir: join(folder, 'data'), signal: new AbortController().signal })
stack.defer(() => server.release())
const knex = stack.adopt(createDatabase(server.connection(), { poolMax: 2 }), (pool) => pool.destroy())
await migrate(knex)
const account = await createApiKeyRepository(knex).ensureAccount('bench')
const memoryBefore = peakMemory()

const readCpu = await meterCpu(knex)

const added = await measure('new', () => bringIn(file))
const unchanged = await measure('unchanged', () => bringIn(file))
const exported = await measure('export', takeOut)
await writeLines(file, (n) => {
  const payment = paymentOf(n)
  const updatedAt = new Date(payment.updatedAt.getTime() + 60_000)
  return { ...payment, status: payment.status === 'REFUNDED' ? 'CONFIRMED' : 'REFUNDED', updatedAt }
})
const { rows: sizes } = await knex.raw<{ rows: { indexes: bigint; heap: bigint }[] }>(
  `select pg_indexes_size('payments') as indexes, pg_table_size('payments') as heap`,
)
const changed = await measure('changed', () => bringIn(file))
const [size = { indexes: 0n, heap: 1n }] = sizes
const figuresOf = (name: string, seen: Measured, target?: Figure['target']): Figure[] => [
  { name, value: seen.rowsPerSecond, unit: 'rows/s', ...(target !== undefined && { target }) },
  { name: `${name}.node`, value: seen.node, unit: 'CPU µs/row' },
  { name: `${name}.postgres`, value: seen.postgres, unit: 'CPU µs/row' },
]
await report('import', [
  ...figuresOf('ingest.new', added, { atLeast: 10_000 }),
  ...figuresOf('ingest.unchanged', unchanged, { atLeast: 80_000 }),
  ...figuresOf('ingest.changed', changed),
  ...figuresOf('export', exported),
  { name: 'unchanged/new', value: unchanged.rowsPerSecond / added.rowsPerSecond, unit: '' },
  { name: 'indexes/heap', value: Number(size.indexes) / Number(size.heap), unit: '', target: { atMost: 1.5 } },
  { name: 'heap', value: Number(size.heap) / ROWS, unit: 'bytes/row' },
  { name: 'memory.before', value: memoryBefore, unit: 'MiB' },
  { name: 'memory.import', value: unchanged.peak, unit: 'MiB' },
  { name: 'memory.peak', value: peakMemory(), unit: 'MiB' },
])

interface Measured {
  readonly rowsPerSecond: number
  /** CPU time a row, in µs. */
  readonly node: number
  readonly postgres: number
  /** Peak memory of this process so far, in MiB. */
  readonly peak: number
}

async function measure(name: string, work: () => Promise<void>): Promise<Measured> {
  const before = readCpu()
  const startedMs = performance.now()
  await work()
  const seconds = (performance.now() - startedMs) / 1_000
  const after = readCpu()
  const perRow = (cpuSeconds: number) => (cpuSeconds * 1e6) / ROWS
  const measured = {
    rowsPerSecond: ROWS / seconds,
    node: perRow(after.node - before.node),
    postgres: perRow(after.postgres - before.postgres),
    peak: peakMemory(),
  }
  console.error(`${name}: ${seconds.toFixed(1)} s, ${JSON.stringify(measured)}`)
  return measured
}

function peakMemory(): number {
  return process.resourceUsage().maxRSS / 1024
}

async function bringIn(path: string): Promise<void> {
  const counts = await importLines(createReadStream(path, { highWaterMark: MIB / 4 }), importPayments(knex, account))
  console.error(JSON.stringify(counts))
  if (counts.lines !== ROWS || counts.bad > 0) throw new Error('the file was not imported completely')
}

async function takeOut(): Promise<void> {
  let rows = 0
  await exportPayments({ knex, filter: { accountId: account.id } }, async (page) => {
    rows += page.map(formatPaymentLine).length
  })
  if (rows !== ROWS) throw new Error(`${rows} payments were exported instead of ${ROWS}`)
}

async function writeLines(path: string, lineOf = paymentOf): Promise<void> {
  const stream = createWriteStream(path)
  for (let n = 0; n < ROWS; n++) {
    if (!stream.write(`${formatPaymentLine(lineOf(n))}\n`)) await once(stream, 'drain')
  }
  stream.end()
  await once(stream, 'finish')
}

/** A payment as of a shop: few payees, many payers, some payments in batches, most confirmed, over three years. */
function paymentOf(n: number): Payment {
  const random = createHash('sha256').update(`payment ${n}`).digest('hex')
  const share = (digits: number) => Number.parseInt(random.slice(digits, digits + 4), 16) / 65_536
  const network = NETWORKS[Math.floor(share(0) ** 2 * NETWORKS.length)] as string
  const currency = `${SYMBOLS[Math.floor(share(4) ** 2 * SYMBOLS.length)]}-${network}`
  const amount = Math.exp(share(8) * 9)
    .toFixed(2)
    .replace(/\.?0+$/, '') as DecimalString
  const timestamp = new Date(Date.UTC(2023, 5, 1) + Math.floor((n / ROWS) * 3 * 365 * 86_400) * 1_000)
  const isBatched = share(12) < 0.15
  const status = share(16) < 0.93 ? 'CONFIRMED' : share(16) < 0.97 ? 'PARTIAL' : 'REFUNDED'
  const transaction = createHash('sha256')
    .update(`tx ${isBatched ? n - (n % 20) : n} ${isBatched}`)
    .digest('hex')
  return {
    id: `${random.slice(0, 8)}-${random.slice(8, 12)}-8${random.slice(13, 16)}-8${random.slice(17, 20)}-${random.slice(20, 32)}`,
    status,
    type: 'DIRECT',
    confirmations: 64,
    timestamp,
    updatedAt: new Date(timestamp.getTime() + 60_123),
    amount,
    currency,
    amountInUsd: amount,
    invoiceAmount: amount,
    invoiceCurrency: 'USD',
    network,
    chainId: 'eip155:8453',
    txHash: `0x${transaction}`,
    blockNumber: BigInt(1_000_000 + n),
    eventIndex: isBatched ? n % 20 : 0,
    sourceNetwork: network,
    sourceTxHash: `0x${transaction}`,
    payer: addressOf(`payer ${Math.floor(share(20) ** 3 * 50_000)}`),
    payee: addressOf(`payee ${Math.floor(share(24) ** 2 * 200)}`),
    initiator: addressOf(`payer ${Math.floor(share(20) ** 3 * 50_000)}`),
    tokenAddress: addressOf(currency),
    requestId: `01${random}`,
    paymentReference: `0x${random.slice(40, 56)}`,
    reference: `INV-${n}`,
    fees: [
      {
        type: 'PLATFORM',
        stage: 'SENDING',
        amount: '0.25',
        currency,
        amountInUsd: '0.25',
        receiverAddress: addressOf('platform'),
        network,
      },
    ],
    marks: [],
    ...(PAIRS > 0 && { metadata: pairsOf(n) }),
    exchangeRates: [{ from: currency, to: 'USD', rate: '1.0001', source: 'feed', at: timestamp.toISOString() }],
    gas: {
      used: '90211',
      price: '0.000000008',
      amount: '0.000721688',
      currency: `ETH-${network}`,
      amountInUsd: '2.16',
    },
    refunds: [],
    refundedAmount: '0',
    statusHistory: [
      { status: 'PENDING', at: timestamp.toISOString() },
      { status, at: new Date(timestamp.getTime() + 60_000).toISOString() },
    ],
  }
}

function pairsOf(n: number): Record<string, string> {
  return Object.fromEntries(Array.from({ length: PAIRS }, (_, key) => [`key-${key}`, String(n % 10 ** (6 - key))]))
}

function addressOf(name: string): Address {
  return `0x${createHash('sha256').update(name).digest('hex').slice(0, 40)}` as Address
}
