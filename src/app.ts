import { randomUUID } from 'node:crypto'
import type { Knex } from 'knex'
import { turnLimitsOf } from './api/calls/take-turns.ts'
import { tellSeen } from './api/calls/tell-seen.ts'
import type { Listener } from './api/listener/listener.ts'
import { type ApiOptions, serveApi } from './api/serve-api.ts'
import { createPaymentsServices, VOLATILE_FIELDS } from './api/services/payments-services.ts'
import { watchEventId } from './api/services/watch-handler.ts'
import { createAuth, type LimitClock } from './auth/auth.ts'
import { createApiKeyRepository } from './auth/sql/api-key-repository.ts'
import { createChainDirectory } from './chains/chain-directory.ts'
import type { ChainConfig } from './chains/chains-file.ts'
import { createTokenDirectory } from './chains/token-directory.ts'
import { createDetection, type Detection } from './detection/detection.ts'
import { isLoopbackAuthority } from './domain/ip-network.ts'
import type { Logger } from './domain/logger.ts'
import { classifyDatabaseError } from './postgres/database-error.ts'
import { connectionsOf } from './postgres/knex.ts'
import { pendingMigrations } from './postgres/migrate.ts'
import type { ReadPools } from './postgres/replicas/read-pools.ts'
import { createSeenTokens } from './postgres/replicas/seen-tokens.ts'
import { createRefundWallets } from './requests/refund-wallets.ts'
import { createRequests, type Requests } from './requests/requests.ts'
import { createRefundWalletRepository } from './requests/sql/refund-wallet-repository.ts'
import { createRequestListRepository } from './requests/sql/request-list-repository.ts'
import { createRequestRepository } from './requests/sql/request-repository.ts'
import type { LifiOptions } from './routing/providers/lifi/lifi-client.ts'
import { createRouting } from './routing/routing.ts'
import { createPaymentSearch } from './search/page/payment-search.ts'
import { createPaymentReads, createPooledReads } from './search/payment-reads.ts'
import { createWatchRepository } from './search/sql/watch-repository.ts'
import { createWatchHub } from './search/watch/watch-hub.ts'
import { createWatchPayments } from './search/watch/watch-payments.ts'
import { type ChangePruning, createChangePruning } from './store/prune-changes.ts'
import { getOrCreateSecret } from './store/settings-repository.ts'

/** The composition root: makes every room and gives each what it needs of the others. */

export interface ServiceOptions {
  /** A migrated database. */
  readonly knex: Knex
  /** The same database and servers that follow it. */
  readonly readPools?: ReadPools
  /** The chains to serve; none runs search alone. */
  readonly chains: readonly ChainConfig[]
  readonly logger: Logger
  readonly now: () => Date
  /** The name of an account that the key of the same name reaches; in a demo process alone. */
  readonly demoAccount?: string
  /** What an address may do a minute without a key; 0 for any number; 300 by default. */
  readonly openCallsPerMinute?: number
  /** Who carries payments in from other chains; nobody unless given. */
  readonly lifi?: LifiOptions
  /** In the place of the clocks of the database and of this machine, for tests of limits. */
  readonly limitClock?: LimitClock
}

/** A service that is put together. Nothing runs before it is told to. */
export interface Service {
  readonly requests: Requests
  readonly detection: Detection
  /** Of the log of changes. */
  readonly pruning: ChangePruning
  /** Finds out how the nodes of all chains measure gas, so that nobody who pays waits for it. Never rejects; ends early when the signal fires. */
  learnNodes(signal: AbortSignal): Promise<void>
  /** Begins to answer. What the options leave out has defaults. */
  listen(options: ListenOptions): Promise<Listener>
}

export type ListenOptions = Pick<
  ApiOptions,
  'host' | 'port' | 'transport' | 'corsOrigins' | 'trustedProxies' | 'limits'
>

const CURSOR_SECRET = 'cursor-secret'

/** What may be read from a replica. */
const POOLED_METHODS = new Set(['SearchPayments', 'GetPayment', 'SummarizePayments', 'ExportPayments'])

/** Puts the rooms together. */
export async function composeService(options: ServiceOptions): Promise<Service> {
  const { knex, logger, now, demoAccount } = options
  const chains = createChainDirectory(options.chains)
  const tokens = createTokenDirectory(options.chains)
  const cursorSecret = await getOrCreateSecret(knex, CURSOR_SECRET)
  const apiKeys = createApiKeyRepository(knex)
  const requestRepository = createRequestRepository(knex, now)
  const routes = createRouting({
    chains,
    tokens,
    clock: () => now().getTime(),
    logger,
    ...(options.lifi && { lifi: options.lifi }),
    loadRequest: (account, reference, signal) => requestRepository.findByReference(account, reference, signal),
  })
  const detection = createDetection({
    knex,
    chains,
    tokens,
    logger,
    clock: now,
    ...(routes.findTransfer && { findSource: routes.findTransfer }),
  })
  const requests = createRequests({
    repository: requestRepository,
    lists: createRequestListRepository(knex),
    known: { chains, tokens },
    cursorSecret,
    now,
    onStored: (account, stored) => detection.onRequestsStored(account, stored),
  })
  const wallets = createRefundWallets({
    repository: createRefundWalletRepository(knex),
    chains: options.chains,
    now,
  })
  const search = createPaymentSearch({ knex, chains, tokens, cursorSecret })
  const parseFilter: typeof search.parseFilter = (...asked) => search.parseFilter(...asked)
  const { readPools } = options
  const replicas = (readPools?.pools.length ?? 1) - 1
  const reads =
    readPools === undefined
      ? createPaymentReads({ knex, chains, tokens, cursorSecret })
      : createPooledReads(readPools, { chains, tokens, cursorSecret })
  const { openCallsPerMinute, limitClock } = options
  const processKey =
    demoAccount === undefined ? undefined : { key: demoAccount, account: await apiKeys.ensureAccount(demoAccount) }
  const auth = createAuth({ knex, logger, now, processKey, openCallsPerMinute, limitClock })
  const changes = createWatchRepository(knex)
  const watch = createWatchPayments({
    parseFilter,
    repository: changes,
    hub: createWatchHub({ readLastChanges: (accountIds) => changes.lastChanges(accountIds), logger }),
    cursorSecret,
    now,
  })
  const ownServices = createPaymentsServices({
    routes,
    requests: { requests, warningsOf: routes.warningsOf },
    wallets,
    payments: reads,
    summarize: reads.summarize,
    readExport: reads.readExport,
    watch: { watch, issueTicket: (caller) => auth.issueTicket(caller) },
  })
  const services =
    readPools === undefined
      ? ownServices
      : tellSeen(ownServices, createSeenTokens(readPools, cursorSecret, POOLED_METHODS))
  return {
    requests,
    detection,
    pruning: createChangePruning({ knex, logger, now, owner: randomUUID() }),
    learnNodes: (signal) => routes.learnNodes(signal),
    listen: (listenOptions) =>
      serveApi({
        ...listenOptions,
        // The primary stands in for replicas that are gone, and its pool is no larger than theirs.
        limits: { ...turnLimitsOf(replicas || 1, connectionsOf(knex)), ...listenOptions.limits },
        services,
        authenticate: auth.authenticate,
        countOpen: auth.countOpen,
        isKeyInForce: auth.isKeyInForce,
        logger,
        classify: classifyFailure,
        ready: async () => (await pendingMigrations(knex)).length === 0,
        volatileFields: VOLATILE_FIELDS,
        eventIdOf: watchEventId,
        ...(demoAccount !== undefined && demoRestrictions),
      }),
  }
}

/** A page on the web could otherwise reach the demo, whose key is known, through a name that points to loopback. */
const demoRestrictions = {
  extraHeaders: { 'x-waybill-demo': 'true' },
  isHostAllowed: isLoopbackAuthority,
}

function classifyFailure(error: unknown) {
  switch (classifyDatabaseError(error)) {
    case 'timeout':
      return 'DATABASE_TIMEOUT'
    case 'unavailable':
      return 'DATABASE_UNAVAILABLE'
    case 'serialization':
    case 'unique':
    case 'other':
      return undefined
  }
}
