import { Readable } from 'node:stream'
import { setTimeout } from 'node:timers/promises'
import type { Knex } from 'knex'
import type { Demo } from '../../../demo/demo.ts'
import type { DemoFile } from '../../../demo/demo-file.ts'
import type { DemoRequests } from '../../../demo/history/demo-requests.ts'
import type { Service } from '../../app.ts'
import { createApiKeyRepository } from '../../auth/sql/api-key-repository.ts'
import type { Config } from '../../config.ts'
import { caip2Of } from '../../domain/chain.ts'
import type { Logger } from '../../domain/logger.ts'
import { importPayments } from '../../imports/import-payments.ts'
import { importLines } from '../../imports/lines/import-lines.ts'
import { forgetChain } from '../../store/forget-chain.ts'
import { readSetting, writeSettingOnce } from '../../store/settings-repository.ts'
import type { CommandContext } from '../shared/command.ts'
import { stampDataFolder } from '../shared/stamp-data-folder.ts'
import type { ServeTools } from './announce.ts'
import { listen, runUntilStopped } from './listen.ts'
import { openStore } from './open-store.ts'

/** The name of the demo's account, which is also its API key. */
const DEMO = 'demo'

/** A key for pages; it has the form of others, so that clients can check it. */
const PUBLISHABLE_KEY = `wbp_${DEMO.repeat(10)}`

/** The shop of the demo's checkout pages: its logo is an open book. */
const DEMO_SHOP = {
  name: 'Bay Books',
  logo: `data:image/svg+xml;base64,${Buffer.from(
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><path fill="none" stroke="#2f8f5b" stroke-width="2.5" stroke-linejoin="round" d="M16 9C12 6 7 6 3 7v18c4-1 9-1 13 2 4-3 9-3 13-2V7c-4-1-9-1-13 2zm0 0v18"/></svg>',
  ).toString('base64')}`,
}

/** Where the development servers of web projects listen. */
const DEVELOPMENT_PORTS = [3000, 4173, 5173, 8000]

/** The id that routes give the bridge, which has the API of LI.FI. */
const DEMO_BRIDGE = 'demo-bridge'

/** So long nothing runs beside the first answer, for which a newcomer waits; then what takes seconds runs, one after the other. */
const FIRST_ANSWER_MS = 1_500

const MAX_CALL_MS = 60_000

/** Runs the demo: local chains, an embedded database and a payer. */
export async function serveDemo(
  config: Config,
  context: CommandContext,
  { logger, telemetry, isQuiet }: ServeTools & { readonly isQuiet: boolean },
): Promise<void> {
  const { signal, stdout } = context
  const now = () => new Date()
  await using stack = new AsyncDisposableStack()
  await stampDataFolder(config.dataDir, 'demo')
  // Concurrently, because a newcomer waits for the whole start. The database works while this process loads its modules.
  const launched = Promise.withResolvers<void>()
  const opening = openStore(config, context, {
    stack,
    logger,
    telemetry,
    onLaunched: launched.resolve,
  })
  await Promise.race([launched.promise, opening.catch(() => {})])
  const [opened, started, loaded, control] = await Promise.allSettled([
    opening,
    import('../../../demo/demo.ts').then(({ startDemo }) => startDemo({ dataDir: config.dataDir, logger, now })),
    import('../../app.ts'),
    import('./demo-service.ts'),
  ])
  if (started.status === 'fulfilled') stack.defer(() => started.value.stop())
  const store = valueOf(opened)
  const demo = valueOf(started)
  const { composeService } = valueOf(loaded)
  const services = [valueOf(control).createDemoService(demo)]
  const { knex } = store
  signal.throwIfAborted()
  await forgetFreshChains(knex, demo, { logger, now })
  const lifi = { name: DEMO_BRIDGE, url: demo.bridgeUrl }
  const publishable = { key: PUBLISHABLE_KEY, origins: originsOf(config.port), shop: DEMO_SHOP }
  const keys = { account: DEMO, publishable, wallets: demo.wallets, services }
  const { webhooksAllowPrivate } = config
  const service = await composeService({
    knex,
    chains: demo.configs,
    logger,
    now,
    demo: keys,
    lifi,
    telemetry,
    webhooksAllowPrivate,
  })
  await demo.seed(await createDemoRequests(knex, service))
  signal.throwIfAborted()
  // Detection reads up to the head once, so that the first answer has the whole history.
  await Promise.all(demo.configs.map(({ name }) => service.detection.scanOnce(name)))
  service.detection.start()
  stack.defer(() => service.detection.stop())
  service.background.start()
  stack.defer(() => service.background.stop())
  // DemoService waits for effects.
  const limits = { ...config.limits, maxCallMs: MAX_CALL_MS }
  const listener = await listen(service, { ...config, limits }, { logger, meter: telemetry.meter })
  const file = await demo.live({ baseUrl: listener.url, apiKey: DEMO, publishableKey: PUBLISHABLE_KEY })
  stdout.write(isQuiet ? `${listener.url}\n` : welcome(file, config))
  const prepared = setTimeout(FIRST_ANSWER_MS).then(() => service.learnNodes(signal))
  if (config.chains.kind === 'DEMO') {
    const earlier = demo.earlierPayments(config.chains.days)
    const imported = prepared.then(() => importEarlier(knex, earlier, { signal, logger }))
    stack.defer(() => imported)
  }
  const chainFailed = demo.crashed.then(
    ({ chain, exit }) => new Error(`the node of the demo chain ${chain} has ended (${exit.signal ?? exit.code})`),
  )
  await runUntilStopped({
    listener,
    context,
    delayMs: config.shutdownDelayMs,
    logger,
    failures: [store.failed, chainFailed],
  })
}

/** The origins whose pages may use the demo's publishable key: its own, and those of usual development servers. */
function originsOf(port: number): string[] {
  const hosts = ['127.0.0.1', 'localhost']
  return [port, ...DEVELOPMENT_PORTS].flatMap((each) => hosts.map((host) => `http://${host}:${each}`))
}

function valueOf<T>(settled: PromiseSettledResult<T>): T {
  if (settled.status === 'rejected') throw settled.reason
  return settled.value
}

/** The stored rows of a chain that was created again refer to blocks that no longer exist. */
async function forgetFreshChains(
  knex: Knex,
  demo: Demo,
  { logger, now }: { logger: Logger; now: () => Date },
): Promise<void> {
  for (const name of demo.freshChains) {
    const config = demo.configs.find((each) => each.name === name)
    if (config === undefined) continue
    const rows = await forgetChain(knex, { name, chainId: caip2Of(config.chainId) }, now())
    if (rows > 0) logger.warn({ chain: name, rows }, 'the demo chain was created again: its stored rows are deleted')
  }
}

async function createDemoRequests(knex: Knex, { requests }: Service): Promise<DemoRequests> {
  const account = await createApiKeyRepository(knex).ensureAccount(DEMO)
  return {
    create: (entries) =>
      requests.storeAll(
        account,
        entries.map(({ createdAt, cancelledAt, ...terms }) => ({ terms, createdAt, cancelledAt })),
      ),
    async isClosed(requestId) {
      const { requests: stored } = await requests.list(account, { requestId: [requestId], limit: 1 })
      return stored.some(({ balance }) => balance.status !== 'OPEN')
    },
  }
}

const PAUSE_MS = 20
/** Small, with a pause after each, so that calls are answered in between. */
const LINES_A_BATCH = 500

/** Imports what was paid before the demo's chains, once for a data folder. A failure leaves the demo without it, and is logged. */
async function importEarlier(
  knex: Knex,
  { name, lines }: ReturnType<Demo['earlierPayments']>,
  { signal, logger }: { signal: AbortSignal; logger: Logger },
): Promise<void> {
  const startedMs = performance.now()
  if (signal.aborted) return
  const isImported = `demo-earlier-${name}`
  try {
    if ((await readSetting(knex, isImported)) !== undefined) return
    const account = await createApiKeyRepository(knex).ensureAccount(DEMO)
    const { written, bad } = await importLines(Readable.from(lines), importPayments(knex, account), {
      signal,
      batchLines: LINES_A_BATCH,
      onBatch: async () => setTimeout(PAUSE_MS),
    })
    if (signal.aborted) return
    await writeSettingOnce(knex, isImported, Buffer.from('yes'))
    const seconds = Math.round((performance.now() - startedMs) / 1_000)
    if (written > 0 || bad > 0)
      logger.info({ payments: written, bad, seconds }, 'earlier payments of the demo are imported')
  } catch (error) {
    if (!signal.aborted) logger.warn({ err: error }, 'earlier payments of the demo could not be imported')
  }
}

function welcome({ baseUrl, apiKey, chains, wallets, requests, payUrl }: DemoFile, config: Config): string {
  const open = requests.find(({ says }) => says.startsWith('Open'))
  const curl = `curl -s -H 'x-api-key: ${apiKey}'`
  return [
    `Waybill demo on ${baseUrl}: local chains ${chains.map(({ name }) => name).join(', ')}; their tokens are worth nothing.`,
    '',
    `  Console   ${baseUrl}/console`,
    `  Pay       ${payUrl}`,
    `  Docs      ${baseUrl}/docs`,
    '',
    `gRPC, gRPC-Web, Connect and JSON on this one port. The API key is "${apiKey}".`,
    `Wallets and requests to try, each with a description: ${config.dataDir}/demo.json`,
    '',
    'Routes by which a wallet can pay an open request:',
    `  ${curl} '${baseUrl}/v1/request/${open?.paymentReference}/routes?wallet=${wallets.direct?.address}'`,
    'The five largest confirmed payments:',
    `  ${curl} '${baseUrl}/payments?status=CONFIRMED&sortBy=amount&limit=5'`,
    'The newest payments in USDC on two chains:',
    `  ${curl} '${baseUrl}/payments?currency=USDC&network=ethereum,polygon&includeTotal=exact&limit=5'`,
    '',
    'Ctrl-C stops the demo; the next start continues with the same data.',
    '',
  ].join('\n')
}
