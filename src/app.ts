import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import type { Knex } from 'knex'
import type { LostServers } from './api/calls/end-lost-calls.ts'
import type { ServedService } from './api/calls/served-method.ts'
import { slotLimitsOf } from './api/calls/take-slots.ts'
import { createBuiltFiles } from './api/http/built-files.ts'
import { joinOpenFiles } from './api/http/open-files.ts'
import type { PageCalls } from './api/http/page-calls.ts'
import type { Listener } from './api/listener/listener.ts'
import { createOpenApiFiles } from './api/openapi/openapi-files.ts'
import { type ApiOptions, serveApi } from './api/serve-api.ts'
import type { OperationsCalls } from './api/services/operations-handler.ts'
import { createPaymentToProto } from './api/services/payment-to-proto.ts'
import { createPaymentsServices, VOLATILE_FIELDS } from './api/services/payments-services.ts'
import { SHOWN_TO_PAGES } from './api/services/shown-to-pages.ts'
import { createOpenChanges, readQueryFilter } from './api/services/webhook-events.ts'
import { type Auth, createAuth } from './auth/auth.ts'
import type { ProcessKey } from './auth/authenticate.ts'
import { createApiKeyRepository } from './auth/sql/api-key-repository.ts'
import { type Background, type BackgroundJob, createBackground } from './background.ts'
import { type ChainDirectory, createChainDirectory } from './chains/chain-directory.ts'
import type { ChainConfig } from './chains/chains-file.ts'
import type { FindExplorer } from './chains/explorer.ts'
import { createTokenDirectory, type TokenDirectory } from './chains/token-directory.ts'
import { type ChainComparison, createChainComparison } from './detection/check/compare-chains.ts'
import { createDetection } from './detection/detection.ts'
import { explainUnmatched } from './detection/report/explain-unmatched.ts'
import { listChains } from './detection/report/list-chains.ts'
import { pageUnmatched } from './detection/report/list-unmatched.ts'
import { measureChains } from './detection/report/measure-chains.ts'
import { caip2Of } from './domain/chain.ts'
import { isLoopbackAuthority } from './domain/hosts/ip-network.ts'
import type { Logger } from './domain/logger.ts'
import type { PaymentRequest } from './domain/payment-request.ts'
import type { RouteWarning } from './domain/route.ts'
import type { Meter, Telemetry } from './domain/telemetry/telemetry.ts'
import { measureNodes } from './nodes/measure-nodes.ts'
import { createNodeLimits, type NodeLimits } from './nodes/node-limits.ts'
import { inTransaction, readPromptly } from './postgres/cancellable.ts'
import type { DatabaseClock } from './postgres/database-clock.ts'
import { classifyDatabaseError } from './postgres/database-error.ts'
import { connectionsOf } from './postgres/knex.ts'
import { pendingMigrations } from './postgres/migrations/migrate.ts'
import type { ReadPools } from './postgres/replicas/read-pools.ts'
import { measurePools } from './postgres/watch-statements.ts'
import { createRefundWallets } from './requests/refund-wallets.ts'
import { createRequests } from './requests/requests.ts'
import { createRefundWalletRepository } from './requests/sql/refund-wallet-repository.ts'
import { logExpiredRequests, type ReadUntil, readRequestChanges } from './requests/sql/request-changes.ts'
import { createRequestListRepository } from './requests/sql/request-list-repository.ts'
import { createRequestRepository } from './requests/sql/request-repository.ts'
import { createSummarizeRequests } from './requests/summarize-requests.ts'
import { createWatchRequest } from './requests/watch-request.ts'
import type { LifiOptions } from './routing/providers/lifi/lifi-client.ts'
import { createRouting } from './routing/routing.ts'
import { createPaymentSearch } from './search/page/payment-search.ts'
import { createPaymentReads, createPooledReads } from './search/payment-reads.ts'
import { createWatchRepository } from './search/sql/watch-repository.ts'
import { createWatchHub } from './search/watch/watch-hub.ts'
import { createWatchPayments, type WatchPayments } from './search/watch/watch-payments.ts'
import { endPruning, pruneDueChanges } from './store/prune-changes.ts'
import { getOrCreateSecret } from './store/settings-repository.ts'
import type { ChangeSource } from './webhooks/send/endpoint-worker.ts'
import { createPostWebhook } from './webhooks/send/post-webhook.ts'
import { createSender, type Sender } from './webhooks/send/sender.ts'
import { createDeliveryRepository } from './webhooks/sql/delivery-repository.ts'
import { createEndpointRepository } from './webhooks/sql/endpoint-repository.ts'
import { measureBacklog } from './webhooks/sql/measure-backlog.ts'
import { createWebhooks } from './webhooks/webhooks.ts'

/** The composition root: makes every module and gives each what it needs of the others. */

/** The keys of a demo, which exist in its process alone and reach its account. */
export interface DemoKeys {
  /** The account's name, which is also its secret key. */
  readonly account: string
  readonly publishable: Omit<ProcessKey, 'account'>
  /** What its pages may ask of its wallets. */
  readonly wallets?: PageCalls | undefined
  /** Beside those of every process. */
  readonly services?: readonly ServedService[] | undefined
}

export interface ServiceOptions {
  /** A migrated database. */
  readonly knex: Knex
  /** The same database with its replicas; undefined reads from the primary only. */
  readonly readPools?: ReadPools | undefined
  /** Of a database that is spread over several servers. */
  readonly lostServers?: LostServers | undefined
  /** The chains to serve; an empty list serves search only. */
  readonly chains: readonly ChainConfig[]
  readonly logger: Logger
  readonly now: () => Date
  /** Set in a demo process only. */
  readonly demo?: DemoKeys | undefined
  /** Calls a minute of an address without a key; 0 for any number; default 300. */
  readonly openCallsPerMinute?: number | undefined
  /** The cross-chain provider; undefined for none. */
  readonly lifi?: LifiOptions | undefined
  /** What the parts report to; default nothing. */
  readonly telemetry?: Telemetry | undefined
  /** Compares the clock of this machine with the database's again. */
  readonly databaseClock?: DatabaseClock | undefined
  /** Whether webhooks may be sent to http URLs and private networks; default false. */
  readonly webhooksAllowPrivate?: boolean | undefined
}

export type ListenOptions = Pick<
  ApiOptions,
  'host' | 'port' | 'tls' | 'corsOrigins' | 'trustedProxies' | 'limits' | 'loggedCalls'
>

const CURSOR_SECRET = 'cursor-secret'
const WEBHOOK_SECRET = 'webhook-secret'

/** What several modules need. */
interface Shared {
  readonly chains: ChainDirectory
  readonly tokens: TokenDirectory
  readonly cursorSecret: Buffer
}

export type Service = Awaited<ReturnType<typeof composeService>>

/** Makes the parts of a service and connects them. Starts none. */
export async function composeService(options: ServiceOptions) {
  const { knex, logger, now } = options
  const shared: Shared = {
    chains: createChainDirectory(options.chains),
    tokens: createTokenDirectory(options.chains),
    cursorSecret: await getOrCreateSecret(knex, CURSOR_SECRET),
  }
  const { meter, tracer } = options.telemetry ?? {}
  const limits = createNodeLimits(options.chains, { clock: () => now().getTime(), logger, tracer })
  const requestRepository = createRequestRepository(knex, now)
  const comparison = createChainComparison({ chains: options.chains, clock: now, logger, limits })
  const routes = createRouting({
    objectionTo: (used) => comparison.wrongWith(used),
    listChangedAt: (chainId) => detection.listChangedAt(chainId),
    ...shared,
    clock: () => now().getTime(),
    logger,
    limits,
    lifi: options.lifi,
    loadRequest: (account, reference, signal) => requestRepository.findByReference(account, reference, signal),
  })
  const detection = createDetection({
    ...shared,
    knex,
    logger,
    limits,
    clock: now,
    meter,
    findSource: routes.findTransfer,
  })
  if (meter !== undefined) measure(meter, options, limits)
  const processKeys = await keysOf(options)
  const auth = createAuth({ ...shared, knex, logger, now, processKeys, openCallsPerMinute: options.openCallsPerMinute })
  const lists = createRequestListRepository(knex)
  const requests = createRequests({
    repository: requestRepository,
    lists,
    known: shared,
    cursorSecret: shared.cursorSecret,
    now,
    onStored: (account, stored) => detection.onRequestsStored(account, stored),
    originsOf: auth.originsOfAccount,
  })
  const summarizeRequests = createSummarizeRequests({ knex, lists, known: shared, now })
  const watchRequest = createWatchRequest({ readMany: (...asked) => requestRepository.findMany(...asked), logger, now })
  const wallets = createRefundWallets({ repository: createRefundWalletRepository(knex), chains: options.chains, now })
  const { readPools } = options
  const reads = readPools === undefined ? createPaymentReads({ ...shared, knex }) : createPooledReads(readPools, shared)
  const findExplorer: FindExplorer = (network) =>
    network === undefined ? undefined : shared.chains.config(network)?.explorer
  const webhooks = await composeWebhooks(options, shared, { findExplorer, warningsOf: routes.warningsOf })
  const services = createPaymentsServices({
    routes,
    requests: { requests, summarize: summarizeRequests, watch: watchRequest, warningsOf: routes.warningsOf },
    wallets,
    payments: reads,
    operations: composeOperations(options, shared),
    findExplorer,
    webhooks: webhooks.service,
    keys: auth.keyCalls,
    watch: { watch: composeWatch(options, shared), issueTicket: (caller) => auth.issueTicket(caller) },
  })
  return {
    requests,
    detection,
    webhooks,
    /** Compares the chains file with its nodes, prunes the log of changes, and sends webhooks. */
    background: composeBackground(options, comparison, webhooks),
    /**
     * Compares what payers are sent to with what the nodes answer; the background goes on with that. Routes by what two answers say is wrong are
     * unavailable from then on.
     */
    compareChains: (signal: AbortSignal) => comparison.round(signal),
    /**
     * Finds out how the nodes of all chains measure gas, so that the first payer does not wait for it. Never rejects; ends early when the
     * signal aborts.
     */
    learnNodes: (signal: AbortSignal) => routes.learnNodes(signal),
    /** Starts to answer. Options that are absent have defaults. */
    listen: (listenOptions: ListenOptions) =>
      listen(options, { ...listenOptions, services: [...services, ...(options.demo?.services ?? [])], auth }),
  }
}

/** What is read at each export, beside what the parts report. */
function measure(meter: Meter, options: ServiceOptions, limits: NodeLimits): void {
  const { knex, readPools, chains, now, databaseClock } = options
  const replicas = (readPools?.replicas ?? []).map((replica, at) => [`replica-${at + 1}`, replica] as const)
  measurePools(meter, { primary: knex, ...Object.fromEntries(replicas) })
  measureNodes(meter, limits, now)
  measureChains(meter, { knex, chains, now })
  measureBacklog(meter, knex)
  if (databaseClock !== undefined) {
    meter.observe([CLOCK_OFFSET], () => [[CLOCK_OFFSET.name, databaseClock.offsetMs() / 1_000]])
  }
}

const CLOCK_OFFSET = {
  name: 'waybill_clock_offset_seconds',
  help: "How far the database's clock is ahead of this machine's.",
}

/** What is shown of a payment or request beside what is stored. */
interface ShownBeside {
  readonly findExplorer: FindExplorer
  readonly warningsOf: (request: PaymentRequest) => readonly RouteWarning[]
}

/** Webhooks read the log of changes as watches do, and have the resources as the API answers them. */
async function composeWebhooks(
  { knex, logger, now, telemetry, webhooksAllowPrivate: allowsPrivate = false }: ServiceOptions,
  shared: Shared,
  { findExplorer, warningsOf }: ShownBeside,
) {
  const { parseFilter } = createPaymentSearch({ ...shared, knex })
  const watch = createWatchRepository(knex)
  const hub = createWatchHub({ readLastChanges: (accountIds) => watch.lastChanges(accountIds), logger })
  const readUntil = async (signal?: AbortSignal): Promise<ReadUntil> => {
    const byChain = new Map((await watch.progress(signal)).map(({ chainId, readTime }) => [chainId, readTime]))
    return new Map(shared.chains.configured.map(({ name, chainId }) => [name, byChain.get(caip2Of(chainId))]))
  }
  const source: ChangeSource = {
    open: createOpenChanges({
      parseFilter,
      readPayments: (query, signal) => watch.read(query, signal),
      readRequests: async (range, signal) =>
        readRequestChanges(knex, range, { readUntil: await readUntil(signal), now: now() }, signal),
      toProto: createPaymentToProto(findExplorer),
      warningsOf,
    }),
    waitForChange: hub.waitForChange,
  }
  const endpoints = createEndpointRepository(knex)
  const { post } = createPostWebhook({ allowsPrivate, now, tracer: telemetry?.tracer })
  const master = await getOrCreateSecret(knex, WEBHOOK_SECRET)
  const sender = createSender({
    knex,
    source,
    endpoints,
    deliveries: createDeliveryRepository(knex),
    post,
    logger,
    now,
    master,
  })
  return {
    service: createWebhooks({
      repository: endpoints,
      checkFilter: (account, filter, signal) => parseFilter(account, readQueryFilter(filter), signal),
      post,
      master,
      now,
      allowsPrivate,
    }),
    source,
    sender,
    /** From which secrets are derived. */
    master,
    /** Logs the expiry of requests for the accounts that have a webhook for it. */
    async logExpired(signal: AbortSignal): Promise<void> {
      const accounts = sender.accountsWithRequests()
      if (accounts.size === 0) return
      const at = { readUntil: await readUntil(signal), now: now() }
      for (const [accountId, since] of accounts) await logExpiredRequests(knex, { accountId, since }, at, signal)
    },
  }
}

function composeBackground(
  { knex, logger, now, databaseClock }: ServiceOptions,
  comparison: ChainComparison,
  { sender, logExpired }: { readonly sender: Sender; readonly logExpired: (signal: AbortSignal) => Promise<void> },
): Background {
  const owner = randomUUID()
  const jobs: BackgroundJob[] = [
    {
      name: 'comparing the chains file with its nodes',
      everyMs: 30_000,
      round: (signal) => comparison.round(signal),
    },
    {
      name: 'removing old changes of payments',
      everyMs: 60_000,
      round: (signal) => pruneDueChanges({ knex, now, owner, signal }),
      end: () => endPruning(knex, owner),
    },
    { name: 'sending webhooks', everyMs: 2_000, round: (signal) => sender.round(signal), end: () => sender.end() },
    { name: 'logging expired requests', everyMs: 2_000, round: logExpired },
  ]
  if (databaseClock !== undefined) {
    const name = "comparing the machine's clock with the database's"
    jobs.push({ name, everyMs: 30_000, round: (signal) => databaseClock.measure(signal) })
  }
  return createBackground(jobs, logger)
}

function composeOperations({ knex, now }: ServiceOptions, { chains, tokens, cursorSecret }: Shared): OperationsCalls {
  return {
    tokens,
    now,
    listChains: (account, signal) =>
      listChains(knex, chains.configured, { now: now(), accountId: account?.id, signal }),
    listUnmatched: (account, input, signal) => pageUnmatched({ knex, chains, cursorSecret }, account, input, signal),
    explain: ({ reason, event }) => explainUnmatched(reason, event),
  }
}

function composeWatch({ knex, logger, now }: ServiceOptions, shared: Shared): WatchPayments {
  const search = createPaymentSearch({ ...shared, knex })
  const repository = createWatchRepository(knex)
  return createWatchPayments({
    parseFilter: search.parseFilter,
    repository,
    hub: createWatchHub({ readLastChanges: (accountIds) => repository.lastChanges(accountIds), logger }),
    cursorSecret: shared.cursorSecret,
    now,
  })
}

async function keysOf({ knex, demo }: ServiceOptions): Promise<ProcessKey[]> {
  if (demo === undefined) return []
  const account = await createApiKeyRepository(knex).ensureAccount(demo.account)
  return [
    { key: demo.account, account },
    { ...demo.publishable, account },
  ]
}

async function listen(
  { knex, readPools, lostServers, logger, demo, telemetry, databaseClock }: ServiceOptions,
  { services, auth, ...options }: ListenOptions & { readonly services: readonly ServedService[]; readonly auth: Auth },
): Promise<Listener> {
  return serveApi({
    ...options,
    // Without a live replica the primary serves their reads, and its pool is no larger than theirs.
    limits: { ...slotLimitsOf(readPools?.replicas.length || 1, connectionsOf(knex)), ...options.limits },
    services,
    authenticate: auth.authenticate,
    countOpen: auth.countOpen,
    isKeyInForce: auth.isKeyInForce,
    lostServers,
    pageOrigins: auth.pageOrigins,
    logger,
    telemetry,
    classify: classifyFailure,
    openFiles: joinOpenFiles([
      createOpenApiFiles(services),
      createBuiltFiles({ folder: BUILT, originsOfKey: auth.originsOfKey, demoKey: demo?.account }),
    ]),
    pageCalls: demo?.wallets,
    async ready() {
      const read = (trx: Knex.Transaction) => pendingMigrations(trx)
      const pending = await readPromptly(
        (signal) => inTransaction(knex, signal, read, { readOnly: true }),
        READY_TIMEOUT_MS,
      )
      return pending.length === 0
    },
    clockOffsetMs: databaseClock?.warnedMs,
    volatileFields: VOLATILE_FIELDS,
    shownToPages: SHOWN_TO_PAGES,
    ...(demo !== undefined && demoRestrictions),
  })
}

/** What `npm run build` writes. */
const BUILT = join(import.meta.dirname, '../apps/dist')

/** How long a probe waits for the database, in milliseconds. */
const READY_TIMEOUT_MS = 3_000

/** The demo's key is public, so a web page could call the demo through a name that resolves to loopback. */
const demoRestrictions = {
  extraHeaders: { 'x-waybill-demo': 'true' },
  isHostAllowed: isLoopbackAuthority,
}

function classifyFailure(error: unknown) {
  const kind = classifyDatabaseError(error)
  if (kind === 'timeout') return 'DATABASE_TIMEOUT'
  return kind === 'unavailable' ? 'DATABASE_UNAVAILABLE' : undefined
}
