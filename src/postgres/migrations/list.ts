import { initial } from './0001-initial.ts'
import { paymentChanges } from './0002-payment-changes.ts'
import { searchIndexes } from './0003-search-indexes.ts'
import { lineHash } from './0004-line-hash.ts'
import { watchTickets } from './0005-watch-tickets.ts'
import { priced } from './0006-priced.ts'
import { carriedPayments } from './0007-carried-payments.ts'
import { refundWallets } from './0008-refund-wallets.ts'
import { requestColumns, requestIndexes, requestStatus } from './0010-requests.ts'
import { singleRequestProxies } from './0011-single-request-proxies.ts'
import { chainSpans } from './0012-chain-spans.ts'
import { chainReports } from './0013-chain-reports.ts'
import { pendingEnrichments } from './0014-pending-enrichments.ts'
import { nodeLimits } from './0015-node-limits.ts'
import { nodeReadings } from './0016-node-readings.ts'
import { publishableKeys } from './0017-publishable-keys.ts'
import { overpaidRequests, requestFlagIndexes } from './0018-overpaid-requests.ts'
import {
  droppedSurplus,
  paymentPlaces,
  refundHashes,
  refundRecipients,
  requestStanding,
  toldPayers,
} from './0019-standing.ts'
import { lineTimes, removedEvents, supersededIndex, supersededPayments } from './0020-superseded-payments.ts'
import { auditOnlyAdded } from './0021-audit-only-added.ts'
import { keyShares } from './0022-key-shares.ts'
import type { Migration } from './migration.ts'

/** All steps of the schema, oldest first. A released step is never changed; a later one corrects it. */
export const MIGRATIONS: readonly Migration[] = [
  initial,
  paymentChanges,
  searchIndexes,
  lineHash,
  watchTickets,
  priced,
  carriedPayments,
  refundWallets,
  requestColumns,
  requestStatus,
  requestIndexes,
  singleRequestProxies,
  chainSpans,
  chainReports,
  pendingEnrichments,
  nodeLimits,
  nodeReadings,
  publishableKeys,
  overpaidRequests,
  requestFlagIndexes,
  requestStanding,
  paymentPlaces,
  refundHashes,
  refundRecipients,
  droppedSurplus,
  toldPayers,
  supersededPayments,
  supersededIndex,
  lineTimes,
  removedEvents,
  auditOnlyAdded,
  keyShares,
]
