import { timingSafeEqual } from 'node:crypto'
import type { Knex } from 'knex'
import type { Account } from '../domain/account.ts'
import type { Logger } from '../domain/logger.ts'
import { createAuthenticate, type ProcessKey, storedFormOf } from './authenticate.ts'
import type { Caller, ReportLimit } from './caller.ts'
import { createFindKeyInForce, isInForce, PUBLISHABLE_CALLS_PER_MINUTE, stateOf } from './find-key-in-force.ts'
import { createCountAddress } from './limit-addresses.ts'
import { createCountCall } from './limit-calls.ts'
import { type KeyPage, listKeyChanges, listKeys, readChangesPage, readKeyPage } from './list-keys.ts'
import { createKeys } from './manage-keys.ts'
import { createPageOrigins } from './page-origins.ts'
import { createRecordUse } from './record-use.ts'
import { hashApiKey, isApiKey } from './rules/api-key.ts'
import { createApiKeyRepository, type StoredApiKey } from './sql/api-key-repository.ts'
import { createLeaseCalls } from './sql/call-windows-repository.ts'
import { createWatchTicketsRepository } from './sql/watch-tickets-repository.ts'
import { createWatchTickets } from './watch-tickets.ts'

export interface AuthOptions {
  readonly knex: Knex
  readonly logger: Logger
  readonly now: () => Date
  /** 32 bytes, the same for all processes on one database. */
  readonly cursorSecret: Uint8Array
  /** The demo's keys; set in a demo process only. */
  readonly processKeys?: readonly ProcessKey[] | undefined
  /** Calls a minute of an address without a key; 0 for no limit; {@link DEFAULT_OPEN_CALLS_PER_MINUTE} when absent. */
  readonly openCallsPerMinute?: number | undefined
  /** Replaces the clocks of the database and of this machine in tests of limits. */
  readonly limitClock?: { readonly now: () => Date; readonly monotonicMs: () => number } | undefined
  /** How long a call waits for the count that all processes share; 250 ms by default. */
  readonly leaseTimeoutMs?: number
}

const DEFAULT_OPEN_CALLS_PER_MINUTE = 300

export type Auth = ReturnType<typeof createAuth>

/** What callers may ask about the keys of their account. */
export type KeysCalls = Auth['keyCalls']

/** Composes what identifies callers and limits their calls, on a migrated database. */
export function createAuth(options: AuthOptions) {
  const { knex, logger, now, cursorSecret, limitClock, leaseTimeoutMs } = options
  const { openCallsPerMinute = DEFAULT_OPEN_CALLS_PER_MINUTE } = options
  const repository = createApiKeyRepository(knex)
  const monotonicMs = limitClock?.monotonicMs ?? (() => performance.now())
  const countAddress = createCountAddress({ callsPerMinute: openCallsPerMinute, monotonicMs })
  const countPage = createCountAddress({ callsPerMinute: PUBLISHABLE_CALLS_PER_MINUTE, monotonicMs })
  const processKeys = (options.processKeys ?? []).map(storedFormOf)
  const lease = createLeaseCalls(knex, { now: limitClock?.now })
  const countCall = createCountCall({ lease, monotonicMs, logger, leaseTimeoutMs })
  const findKeyInForce = createFindKeyInForce({ repository, now, processKeys })
  const ticketsRepository = createWatchTicketsRepository(knex)
  const tickets = createWatchTickets({ repository: ticketsRepository, findKeyInForce, countCall, countAddress, now })
  const authenticate = createAuthenticate({
    repository,
    now,
    monotonicMs,
    countAddress,
    countCall,
    recordUse: createRecordUse({ write: (ids, at) => repository.recordUse(ids, at), now }),
    tickets,
    countPage,
    processKeys,
  })
  return {
    authenticate,
    /**
     * Counts a call of an address without a key.
     *
     * @throws WaybillError RATE_LIMITED
     */
    countOpen: (address: string, report: ReportLimit) => void countAddress(address, report),
    /** Whether a key is neither revoked nor expired; asked again during long calls. */
    isKeyInForce: async (keyId: string) => (await findKeyInForce(keyId)) !== undefined,
    /** What callers may ask about the keys of their account. */
    keyCalls: {
      keys: createKeys({ repository, now, processKeys }),
      /** The key of a call; undefined once it has ended. */
      find: findKeyInForce,
      checkList: (account: Account, page: KeyPage) => void readKeyPage(cursorSecret, account, page),
      list: (account: Account, page: KeyPage, signal?: AbortSignal) =>
        listKeys({ repository, cursorSecret }, account, page, now(), signal),
      checkChanges: (account: Account, page: KeyPage) => void readChangesPage(cursorSecret, account, page),
      listChanges: async (account: Account, page: KeyPage, signal?: AbortSignal) =>
        listKeyChanges(knex, account, readChangesPage(cursorSecret, account, page), signal),
      stateOf: (key: StoredApiKey) => stateOf(key, now()),
    },
    /** Issues a ticket with which a browser can open one watch. */
    issueTicket: (caller: Caller) => tickets.issue(caller),
    /** The origins of one publishable key in force; undefined for any other text. */
    originsOfKey: async (key: string): Promise<readonly string[] | undefined> => {
      const keyHash = hashApiKey(key)
      const own = processKeys.find((each) => timingSafeEqual(each.keyHash, keyHash))
      const [found] = own !== undefined || !isApiKey(key) ? [own] : await repository.findByHashes([keyHash])
      return found !== undefined && isInForce(found, now()) ? found.origins : undefined
    },
    /** The origins of the publishable keys in force of an account. */
    originsOfAccount: async (account: Account): Promise<ReadonlySet<string>> => {
      const own = processKeys.filter((key) => key.account.id === account.id).flatMap(({ origins = [] }) => origins)
      return new Set([...own, ...(await repository.listOrigins(now(), account.id))])
    },
    /** The origins of all publishable keys. */
    pageOrigins: createPageOrigins({
      read: () => repository.listOrigins(now()),
      always: processKeys.flatMap(({ origins = [] }) => origins),
      monotonicMs,
      logger,
    }),
  }
}
