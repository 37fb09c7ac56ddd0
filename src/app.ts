import { randomUUID } from 'node:crypto'
import type { Knex } from 'knex'
import { createApiKeyRepository } from './auth/api-key-repository.ts'
import { createAuth, type LimitClock } from './auth/auth.ts'
import { classifyDatabaseError } from './db/database-error.ts'
import { connectionsOf } from './db/knex.ts'
import { pendingMigrations } from './db/migrate.ts'
import { type ChangePruning, createChangePruning } from './db/prune-changes.ts'
import type { ReadPools } from './db/read-pools.ts'
import { createSeenTokens } from './db/seen-tokens.ts'
import { getOrCreateSecret } from './db/settings-repository.ts'
import { createDetection, type Detection } from './detection/detection.ts'
import { createChainDirectory } from './domain/chain-directory.ts'
import type { ChainConfig } from './domain/chains-file.ts'
import { isLoopbackAuthority } from './domain/ip-network.ts'
import type { Logger } from './domain/logger.ts'
import { createTokenDirectory } from './domain/token-directory.ts'
import { createPaymentsServices, VOLATILE_FIELDS } from './protocol/handlers/payments-services.ts'
import { watchEventId } from './protocol/handlers/watch-handler.ts'
import type { Listener } from './protocol/listener.ts'
import { type ApiOptions, serveApi } from './protocol/serve-api.ts'
import { turnLimitsOf } from './protocol/take-turns.ts'
import { tellSeen } from './protocol/tell-seen.ts'
import { createRefundWalletRepository } from './requests/refund-wallet-repository.ts'
import { createRefundWallets } from './requests/refund-wallets.ts'
import { createRequestListRepository } from './requests/request-list-repository.ts'
import { createRequestRepository } from './requests/request-repository.ts'
import { createRequests, type Requests } from './requests/requests.ts'
import type { LifiOptions } from './routing/lifi-client.ts'
import { createRouting } from './routing/routing.ts'
import { createPaymentReads, createPooledReads } from './search/payment-reads.ts'
import { createPaymentSearch } from './search/payment-search.ts'
import { createWatchHub } from './search/watch-hub.ts'
import { createWatchPayments } from './search/watch-payments.ts'
import { createWatchRepository } from './search/watch-repository.ts'

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
