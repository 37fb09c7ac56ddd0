/**
 * A day of an operator, from the file tree of the image: two processes behind nginx and behind grpc-js with round_robin, calls without a pause, and one
 * thing after the other that happens in a day. Each payment is in the database and at the receiver of webhooks at the end. Prints what each step cost.
 *
 * The receiver of webhooks is down until it has refused each payment once, since the second retry comes only after five minutes.
 */
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Hex } from 'viem'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { ServerBinaries } from '../../src/postgres/embedded/embedded-files.ts'
import { reasonWithoutNginx } from '../../tools/proxies/nginx.ts'
import { type SoakDatabase, startSoakDatabase } from '../detection/soak/soak-services.ts'
import { startTestChain, type TestChain } from '../support/chains/chain.ts'
import { findFreePort } from '../support/data/free-port.ts'
import { writeImageTree } from '../support/image-tree.ts'
import { runWaybill, startWaybill, type WaybillProcess } from '../support/process.ts'
import { addressesOf, callMeanwhile, grpcCaller, startGuidedNginx } from '../support/rolling.ts'
import { rowsOf } from '../support/run-command.ts'
import { makeTempFolder } from '../support/temp-folder.ts'
import { type Receiver, startReceiver } from '../webhooks/webhook-stage.ts'

const without = await reasonWithoutNginx()
const PATIENCE = { timeout: 120_000, interval: 250 }

let folder: string
let tree: string
let database: SoakDatabase
let databaseUrl: string
let chains: readonly [TestChain, TestChain]
let nginx: Awaited<ReturnType<typeof startGuidedNginx>>
let shop: Receiver
let ports: number[]
let metricsPorts: number[]
let key: string
let isReceiverDown = false
const running = new Map<number, WaybillProcess>()
const paid: string[] = []
const rows: Record<string, unknown>[] = []

/** PostgreSQL with its tools, as Debian installs it: the packages of npm have no pg_dump. */
async function installedServer(): Promise<{ bin: string; binaries: ServerBinaries } | undefined> {
  const home = '/usr/lib/postgresql'
  const [version] = existsSync(home) ? (await readdir(home)).toSorted().toReversed() : []
  if (version === undefined || !existsSync(join(home, version, 'bin/pg_dump'))) return undefined
  const bin = join(home, version, 'bin')
  const programs = { postgres: join(bin, 'postgres'), initdb: join(bin, 'initdb') }
  return {
    bin,
    binaries: { ...programs, libraries: join(home, version, 'lib'), links: new Map(), locale: ['--locale=C.UTF-8'] },
  }
}
const installed = await installedServer()

const environment = () => ({ DATABASE_URL: databaseUrl, CHAINS_FILE: join(folder, 'chains.json') })

async function start(port: number): Promise<void> {
  const own = { PORT: `${port}`, METRICS_PORT: `${metricsPorts[ports.indexOf(port)]}`, LOG_CALLS: '0' }
  const settings = { WEBHOOK_ALLOW_PRIVATE: 'true', SHUTDOWN_DELAY_SECONDS: '1', DATABASE_CONNECTIONS: '6' }
  const service = startWaybill(['serve'], { ...environment(), ...settings, ...own }, undefined, tree)
  running.set(port, service)
  await service.says(/Waybill on/)
}

async function stopAt(port: number): Promise<void> {
  const service = running.get(port)
  service?.kill('SIGTERM')
  expect(await service?.ended).toMatchObject({ code: 0 })
}

async function replaceBoth(): Promise<void> {
  for (const port of ports) {
    await stopAt(port)
    await start(port)
    await expect
      .poll(() => fetch(`http://127.0.0.1:${port}/readyz`).then(({ status }) => status, String), PATIENCE)
      .toBe(200)
  }
}

const command = async (...words: string[]) => {
  const { code, stdout, stderr } = await runWaybill(words, { ...environment(), WEBHOOK_ALLOW_PRIVATE: 'true' })
  expect([code, stderr]).toEqual([0, expect.anything()])
  return stdout
}

const writeChains = (names: readonly string[]) =>
  writeFile(
    join(folder, 'chains.json'),
    JSON.stringify({ chains: names.map((name, at) => chains[at]?.config({ name, finalityDepth: 3 })) }),
  )

const requested = { BASE: [] as Hex[], POLYGON: [] as Hex[] }

async function createRequests(network: keyof typeof requested, count: number): Promise<void> {
  const terms = { payee: chains[0].wallets[1], amount: '1', invoiceCurrency: 'USDC', paymentCurrency: 'USDC', network }
  for (let n = 0; n < count; n++) {
    const made = await nginx.ask(key, 'POST', '/v1/request', JSON.stringify(terms))
    requested[network].push((JSON.parse(made) as { paymentReference: Hex }).paymentReference)
  }
}

async function pay(network: keyof typeof requested): Promise<void> {
  const chain = network === 'BASE' ? chains[0] : chains[1]
  const paymentReference = requested[network].shift() as Hex
  const [payer, to] = chain.wallets
  const { address: token } = chain.tokens.USDC
  const { transactionHash } = await chain.pay(payer, { kind: 'ERC20', token, to, amount: 1_000000n, paymentReference })
  paid.push(transactionHash)
  await chain.mine({ blocks: 4 })
}

async function found(): Promise<string[]> {
  const { payments } = JSON.parse(await nginx.ask(key, 'GET', '/payments?limit=100')) as {
    payments: { txHash: string }[]
  }
  return payments.map(({ txHash }) => txHash).toSorted()
}
async function allFound(): Promise<void> {
  await expect.poll(() => found().catch(String), PATIENCE).toEqual(paid.toSorted())
}

const accepted = new Set<unknown>()

async function allDelivered(): Promise<void> {
  await expect.poll(() => paid.filter((hash) => !accepted.has(hash)), PATIENCE).toEqual([])
}

/** The sum of a metric over both processes, those of its series that match. */
function sumOf(texts: readonly string[], name: string, series = /^/): number {
  const lines = texts.flatMap((text) => text.split('\n')).filter((line) => line.startsWith(name) && series.test(line))
  return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0)
}

const readMetrics = () =>
  Promise.all(
    metricsPorts.map((port) =>
      fetch(`http://127.0.0.1:${port}/metrics`).then(
        (answer) => answer.text(),
        () => '',
      ),
    ),
  )

/** Reads what /metrics shows until the signal, and keeps the largest of each. */
async function watchMetrics(over: AbortSignal) {
  const most = { down: 0, inFlight: 0, lagBlocks: 0, backlogSeconds: 0, databaseErrors: 0, errors: 0 }
  const grow = (name: keyof typeof most, value: number) => {
    most[name] = Math.max(most[name], Math.round(value))
  }
  for (let isLast = false; !isLast; ) {
    isLast = over.aborted
    const texts = await readMetrics()
    grow('down', texts.filter((text) => text === '').length)
    grow('inFlight', sumOf(texts, 'waybill_calls_in_flight'))
    grow('lagBlocks', sumOf(texts, 'waybill_chain_lag_blocks'))
    grow('backlogSeconds', sumOf(texts, 'waybill_webhook_backlog_seconds'))
    grow('databaseErrors', sumOf(texts, 'waybill_database_errors_total'))
    grow('errors', sumOf(texts, 'waybill_errors_total'))
    if (!isLast) await sleep(500)
  }
  return most
}

/** Does work while calls come in three ways; notes it. @returns the calls that failed */
async function step(name: string, work: () => Promise<unknown>): Promise<string[]> {
  const over = new AbortController()
  const [own, proxied] = [grpcCaller(addressesOf(ports), key), grpcCaller(nginx.grpc, key)]
  const ways = [own.call, proxied.call, () => nginx.ask(key, 'GET', '/payments')]
  let nth = 0
  const startedMs = performance.now()
  const watching = watchMetrics(over.signal)
  const { calls, failed } = await callMeanwhile(async () => ways[nth++ % ways.length]?.(), work, 3).finally(() =>
    over.abort(),
  )
  own.close()
  proxied.close()
  const seconds = Math.round((performance.now() - startedMs) / 1_000)
  rows.push({
    step: name,
    seconds,
    calls,
    failed: failed.length,
    paid: paid.length,
    delivered: accepted.size,
    ...(await watching),
  })
  const nginxSays = nginx.saysOf(failed).slice(-2_000)
  return failed.map((error) => `${(error as Error).message} ${JSON.stringify(error)} ${nginxSays}`)
}

beforeAll(async () => {
  if (without !== undefined) return
  folder = await makeTempFolder('operators-day')
  tree = join(folder, 'app')
  await writeImageTree(tree)
  database = await startSoakDatabase(join(folder, 'database'), installed?.binaries)
  databaseUrl = database.url
  key = database.keys.shop
  chains = [await startTestChain({ chainId: 31_801 }), await startTestChain({ chainId: 31_802 })]
  for (const chain of chains) await chain.fund(chain.tokens.USDC, chain.wallets[0], 1_000_000000n)
  await writeChains(['BASE'])
  ports = [await findFreePort(), await findFreePort()]
  metricsPorts = [await findFreePort(), await findFreePort()]
  shop = await startReceiver(({ type, data }) => {
    if (isReceiverDown) return 503
    if (type === 'payment.added') accepted.add(data['txHash'])
    return 204
  })
  nginx = await startGuidedNginx(ports)
  for (const port of ports) await start(port)
  await command('webhooks', 'create', shop.url, '--account', 'shop')
  await createRequests('BASE', 8)
}, 600_000)
afterAll(async () => {
  for (const each of running.values()) each.kill('SIGKILL')
  await Promise.all([...running.values()].map(({ ended }) => ended))
  await Promise.all([nginx?.stop(), shop?.stop(), ...(chains ?? []).map((chain) => chain.stop())])
  await database?.stop()
  if (folder !== undefined) await rm(folder, { recursive: true, force: true })
})

it.skipIf(without !== undefined)('loses nothing over a day', { timeout: 1_200_000 }, async () => {
  const usual = async () => {
    await pay('BASE')
    await allFound()
    await allDelivered()
    const backlog = async () => sumOf(await readMetrics(), 'waybill_webhook_backlog_seconds')
    await expect.poll(backlog, PATIENCE).toBe(0)
  }
  expect(await step('a usual hour', usual)).toEqual([])

  const duringRestart = step('rolling restart', async () => {
    await Promise.all([replaceBoth(), pay('BASE')])
    await allFound()
    await allDelivered()
  })
  expect(await duringRestart).toEqual([])

  const old = key
  const [[id = ''] = []] = rowsOf(await command('keys', 'list', '--account', 'shop'))
  const rotated = step('key rotated', async () => {
    key = (await command('keys', 'rotate', id, '--overlap', '24h')).trim()
    await usual()
  })
  expect(await rotated).toEqual([])
  const revoked = step('old key revoked', async () => {
    await command('keys', 'revoke', id)
    await expect.poll(() => nginx.ask(old, 'GET', '/payments').catch(String), PATIENCE).toMatch(/status 401/)
  })
  expect(await revoked).toEqual([])

  const withoutDatabase = await step('database killed, away for 3 s', async () => {
    await Promise.all([database.kill(3_000), pay('BASE')])
    await allFound()
    await allDelivered()
  })
  expect(withoutDatabase.filter((each) => !/UNAVAILABLE/.test(each))).toEqual([])
  expect(withoutDatabase).not.toEqual([])

  const added = step('a chain added', async () => {
    await writeChains(['BASE', 'POLYGON'])
    await replaceBoth()
    await createRequests('POLYGON', 2)
    await pay('POLYGON')
    await allFound()
    await allDelivered()
  })
  expect(await added).toEqual([])

  const receiverDown = step('receiver of webhooks down', async () => {
    isReceiverDown = true
    const from = shop.received.length
    await Promise.all([pay('BASE'), pay('POLYGON')])
    const refused = () => shop.received.slice(from).filter(({ type }) => type === 'payment.added').length
    await shop.until(() => refused() === 2)
    isReceiverDown = false
    await allDelivered()
  })
  expect(await receiverDown).toEqual([])

  if (installed !== undefined) await step('restored from a dump', () => restore(installed.bin))
  await createRequests('BASE', 1)
  expect(await step('afterwards', usual)).toEqual([])
  expect(await found()).toEqual(paid.toSorted())
  console.table(rows)
  console.log(
    `lost: ${paid.filter((hash) => !accepted.has(hash)).length} of ${paid.length} payments; deliveries: ${shop.received.length}`,
  )
})

/** A payment comes after the dump; then the database is lost, and another is restored. */
async function restore(bin: string): Promise<void> {
  const file = join(folder, 'dump')
  execFileSync(join(bin, 'pg_dump'), ['-Fc', '-f', file, databaseUrl])
  await pay('BASE')
  await allFound()
  await Promise.all(ports.map(stopAt))
  await database.knex.raw('create database restored')
  const restored = new URL(databaseUrl)
  restored.pathname = '/restored'
  databaseUrl = restored.href
  execFileSync(join(bin, 'pg_restore'), ['-d', databaseUrl, file])
  await Promise.all(ports.map(start))
  await allFound()
  await allDelivered()
}
