/**
 * Measures how soon payments are searchable: from when the node first serves their block, on chains of 12, 2 and 0.1 seconds a block. A real node
 * mines; the chain is followed as `serve` follows it, into the embedded database. One block in ten has a payment.
 *
 *   npm run bench:live -- --minutes 2
 *   npm run bench:live -- --only 0.1 --minutes 10
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import type { Hex } from 'viem'
import { createApiKeyRepository } from '../src/auth/sql/api-key-repository.ts'
import { openEmbeddedServer } from '../src/postgres/embedded/embedded-server.ts'
import { createDatabase } from '../src/postgres/knex.ts'
import { migrate } from '../src/postgres/migrations/migrate.ts'
import { startTestChain } from '../test/support/chains/chain.ts'
import { startRpcProxy } from '../test/support/chains/rpc-proxy.ts'
import { configOf, detect, makeRequest, storeRequest } from '../test/support/detection.ts'
import { freshAddress } from '../test/support/routing.ts'
import { meterCpu } from './cpu-seconds.ts'
import { type Figure, report } from './report.ts'

const CADENCES = ['12', '2', '0.1']
const PAID_ONE_IN = 10
const CHECK_EVERY_MS = 3

const { values } = parseArgs({
  options: { minutes: { type: 'string', default: '2' }, only: { type: 'string', multiple: true } },
})
const minutes = Number(values.minutes)
if (!(minutes > 0)) {
  console.error('--minutes takes a number above 0')
  process.exit(2)
}

const folder = await mkdtemp(join(tmpdir(), 'waybill-live-'))
await using stack = new AsyncDisposableStack()
stack.defer(() => rm(folder, { recursive: true }))
const server = await openEmbeddedServer({ dataDir: join(folder, 'data'), signal: new AbortController().signal })
stack.defer(() => server.release())
const knex = stack.adopt(createDatabase(server.connection(), { poolMax: 6 }), (pool) => pool.destroy())
await migrate(knex)
const account = await createApiKeyRepository(knex).ensureAccount('bench')
const readCpu = await meterCpu(knex)
const figures: Figure[] = []
for (const [nth, cadence] of (values.only ?? CADENCES).entries()) figures.push(...(await follow(cadence, 31_480 + nth)))
await report('live', figures)

/** Mines a block each time that `cadence` seconds have passed, and waits for the payments in some of them. */
async function follow(cadence: string, chainId: number): Promise<Figure[]> {
  const everyMs = Number(cadence) * 1_000
  const chain = await startTestChain({ chainId, automine: false })
  const node = await startRpcProxy(chain.rpcUrl)
  const network = `LIVE${chainId}`
  const config = configOf(chain, network, { rpcUrls: [node.url], blockTimeSeconds: Number(cadence) })
  const detection = detect(knex, [config])
  const delays: number[] = []
  const waits: Promise<void>[] = []
  try {
    await chain.mine()
    detection.start()
    await untilRead(chainId, await headOf(chain))
    const blocks = Math.max(5, Math.round((minutes * 60_000) / everyMs))
    // Fewer blocks than ten times twenty would say nothing about p99.
    const paidOneIn = Math.max(1, Math.min(PAID_ONE_IN, Math.floor(blocks / 20)))
    const [before, callsBefore, startMs] = [readCpu(), node.calls.length, performance.now()]
    for (let block = 0; block < blocks; block++) {
      const hash = block % paidOneIn === 0 ? await sendPayment() : undefined
      await sleep(Math.max(0, startMs + block * everyMs - performance.now()))
      await chain.mine()
      const servedMs = performance.now()
      if (hash !== undefined)
        waits.push(untilSearchable(hash).then(() => void delays.push(performance.now() - servedMs)))
    }
    await Promise.all(waits)
    const [after, seconds] = [readCpu(), (performance.now() - startMs) / 1_000]
    const sorted = delays.toSorted((a, b) => a - b)
    const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0
    const name = `live.${cadence}s`
    console.error(`${name}: ${blocks} blocks in ${seconds.toFixed(0)} s, ${delays.length} with a payment`)
    return [
      { name: `${name}.p50`, value: at(0.5), unit: 'ms' },
      { name: `${name}.p99`, value: at(0.99), unit: 'ms' },
      { name: `${name}.slowest`, value: at(1), unit: 'ms' },
      { name: `${name}.calls`, value: (node.calls.length - callsBefore) / blocks, unit: 'calls/block' },
      {
        name: `${name}.node`,
        value: ((after.node - before.node) * 1_000) / blocks,
        unit: 'CPU ms/block, with the miner',
      },
      { name: `${name}.postgres`, value: ((after.postgres - before.postgres) * 1_000) / blocks, unit: 'CPU ms/block' },
    ]
  } finally {
    await detection.stop()
    await node.stop()
    await chain.stop()
  }

  async function sendPayment(): Promise<Hex> {
    const payee = freshAddress(`live ${chainId} ${waits.length}`)
    const request = makeRequest({ payee, network, paymentCurrency: `ETH-${network}`, amount: '1' })
    const { paymentReference } = await storeRequest(knex, account, request)
    const payment = { kind: 'NATIVE', to: payee as Hex, amount: 10n ** 18n, paymentReference } as const
    return (await chain.pay(chain.wallets[0], payment)).transactionHash
  }
}

async function headOf(chain: { readonly client: { head(): Promise<{ number: bigint | number }> } }): Promise<number> {
  return Number((await chain.client.head()).number)
}

async function untilRead(chainId: number, block: number): Promise<void> {
  const state = () =>
    knex('chain_state')
      .where({ chain_id: `eip155:${chainId}` })
      .first('scanned_block')
  while (Number((await state())?.['scanned_block'] ?? -1) < block) await sleep(CHECK_EVERY_MS)
}

async function untilSearchable(hash: Hex): Promise<void> {
  const payment = () =>
    knex('payments')
      .where({ account_id: account.id, tx_hash: Buffer.from(hash.slice(2), 'hex') })
      .first('id')
  while ((await payment()) === undefined) await sleep(CHECK_EVERY_MS)
}
