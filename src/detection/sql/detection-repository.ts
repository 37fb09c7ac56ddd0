import type { Knex } from 'knex'
import type { Hex } from '../../domain/hex.ts'
import { findAccepted, findDetectedPayers, findPayers, findWallets } from './account-events-repository.ts'
import { findReportedPayers } from './carried-repository.ts'
import { wantSince } from './chain-state-repository.ts'
import { findRequestProxies } from './request-proxies-repository.ts'
import {
  findAccountNames,
  findAccountsOfTopics,
  findClaimedTopics,
  findRequestsOfTopics,
  oldestRequestsOf,
  readEventsOfTopics,
  sinceRequest,
} from './topics-repository.ts'

export type DetectionRepository = ReturnType<typeof createDetectionRepository>

/** What matching events reads from the database. Each method is a function of the same meaning in this folder, which documents it. */
export function createDetectionRepository(knex: Knex) {
  const on =
    <Given extends unknown[], T>(read: (knex: Knex, ...given: Given) => T) =>
    (...given: Given) =>
      read(knex, ...given)
  return {
    accountsOfTopics: on(findAccountsOfTopics),
    accountNames: on(findAccountNames),
    requestsOfTopics: on(findRequestsOfTopics),
    payersOf: on(findPayers),
    detectedPayersOf: on(findDetectedPayers),
    walletsOf: on(findWallets),
    acceptedOf: on(findAccepted),
    reportedPayersOf: on(findReportedPayers),
    requestProxiesAmong: on(findRequestProxies),
    claimedTopics: on(findClaimedTopics),
    eventsOfTopics: on(readEventsOfTopics),
    /** Has chains read from a day before the oldest of these requests on, where they are not. */
    async wantPayments(accountId: number, topics: readonly Hex[]): Promise<void> {
      const oldest = await oldestRequestsOf(knex, accountId, topics)
      for (const [network, createdAt] of oldest) await wantSince(knex, network, sinceRequest(createdAt))
    },
  }
}
