import type { Knex } from 'knex'
import type { Address } from '../../domain/address.ts'
import type { Hex } from '../../domain/hex.ts'
import type { MatchableRequest } from '../match/match-event.ts'
import { type Acceptance, findAccepted } from './accepted-events-repository.ts'
import { findToldPayers, type ToldPayer } from './carried-repository.ts'
import { wantSince } from './chain-state-repository.ts'
import { oldestRequestsOf, sinceRequest } from './oldest-request.ts'
import {
  type ChainTransactions,
  findDetectedPayers,
  findPayers,
  findWallets,
  type KnownPayers,
  type WalletTime,
} from './payers-repository.ts'
import { type RequestEvents, readEventsOfTopics } from './request-events-repository.ts'
import { findRequestProxies } from './request-proxies-repository.ts'
import { findAccountNames, findAccountsOfTopics, findClaimedTopics, findRequestsOfTopics } from './topics-repository.ts'

/** What matching events reads from the database. Each method is a function of the same meaning in this folder, which documents it. */
export interface DetectionRepository {
  accountsOfTopics(topics: readonly Hex[]): Promise<Map<Hex, number[]>>
  accountNames(ids: readonly number[]): Promise<Map<number, string>>
  requestsOfTopics(accountId: number, topics: readonly Hex[]): Promise<MatchableRequest[]>
  payersOf(
    accountId: number,
    requestIds: readonly string[],
    except?: ChainTransactions,
  ): Promise<Map<string, KnownPayers>>
  detectedPayersOf(accountId: number, transactions: ChainTransactions): Promise<Map<string, Address | undefined>>
  walletsOf(accountId: number, addresses: readonly Address[]): Promise<Map<Address, WalletTime[]>>
  acceptedOf(accountId: number, transactions: ChainTransactions): Promise<Map<string, Acceptance>>
  toldPayersOf(accountId: number, transactions: ChainTransactions): Promise<Map<string, ToldPayer>>
  requestProxiesAmong(chainId: string, addresses: readonly Address[]): Promise<Set<Address>>
  claimedTopics(chainId: string): Promise<Hex[]>
  eventsOfTopics(accountId: number, topics: readonly Hex[]): Promise<RequestEvents[]>
  /** Has chains read from a day before the oldest of these requests on, where they are not. */
  wantPayments(accountId: number, topics: readonly Hex[]): Promise<void>
}

/** Makes the repository on a database. */
export function createDetectionRepository(knex: Knex): DetectionRepository {
  return {
    accountsOfTopics: (topics) => findAccountsOfTopics(knex, topics),
    accountNames: (ids) => findAccountNames(knex, ids),
    requestsOfTopics: (accountId, topics) => findRequestsOfTopics(knex, accountId, topics),
    payersOf: (accountId, requestIds, except) => findPayers(knex, accountId, requestIds, except),
    detectedPayersOf: (accountId, transactions) => findDetectedPayers(knex, accountId, transactions),
    walletsOf: (accountId, addresses) => findWallets(knex, accountId, addresses),
    acceptedOf: (accountId, transactions) => findAccepted(knex, accountId, transactions),
    toldPayersOf: (accountId, transactions) => findToldPayers(knex, accountId, transactions),
    requestProxiesAmong: (chainId, addresses) => findRequestProxies(knex, chainId, addresses),
    claimedTopics: (chainId) => findClaimedTopics(knex, chainId),
    eventsOfTopics: (accountId, topics) => readEventsOfTopics(knex, accountId, topics),
    async wantPayments(accountId, topics) {
      const oldest = await oldestRequestsOf(knex, accountId, topics)
      for (const [network, createdAt] of oldest) await wantSince(knex, network, sinceRequest(createdAt))
    },
  }
}
