import type { MigrationLock } from './lock-mode.ts'

/**
 * The steps that were written before the rules of docs/internals/migrations.md, with what they lock. They are exempt from the rules; this list
 * never grows. `npm run check` compares it with the locks of a real run.
 */
export const OLD_LOCKS: Readonly<Record<string, readonly MigrationLock[]>> = {
  '0001-initial': [],
  '0002-payment-changes': [{ table: 'payments', mode: 'SHARE ROW EXCLUSIVE', passes: 1 }],
  '0003-search-indexes': [
    { table: 'payments', mode: 'ACCESS EXCLUSIVE', passes: 16 },
    { table: 'payment_statistics', mode: 'ACCESS EXCLUSIVE', passes: 2 },
  ],
  '0004-line-hash': [{ table: 'payments', mode: 'ACCESS EXCLUSIVE', passes: 0 }],
  '0005-watch-tickets': [],
  '0006-priced': [
    { table: 'payments', mode: 'ACCESS EXCLUSIVE', passes: 2 },
    { table: 'payment_statistics', mode: 'ACCESS EXCLUSIVE', passes: 1 },
  ],
  '0007-carried-payments': [],
  '0008-refund-wallets': [{ table: 'audit_log', mode: 'ACCESS EXCLUSIVE', passes: 0 }],
  '0010-requests': [{ table: 'requests', mode: 'ACCESS EXCLUSIVE', passes: 0 }],
  // every writer of payments and requests locks account_changes first
  '0010-requests-backfill': [
    { table: 'account_changes', mode: 'EXCLUSIVE', passes: 0 },
    { table: 'requests', mode: 'ROW EXCLUSIVE', passes: 2 },
    { table: 'payments', mode: 'ACCESS SHARE', passes: 1 },
  ],
  '0010-requests-indexes': [{ table: 'requests', mode: 'SHARE', passes: 4 }],
  '0011-single-request-proxies': [],
  '0012-chain-spans': [
    { table: 'chain_contracts', mode: 'ACCESS EXCLUSIVE', passes: 1 },
    { table: 'chain_state', mode: 'ACCESS EXCLUSIVE', passes: 1 },
  ],
  '0013-chain-reports': [{ table: 'unmatched_events', mode: 'SHARE', passes: 2 }],
  '0014-pending-enrichments': [{ table: 'carried_payments', mode: 'ACCESS EXCLUSIVE', passes: 0 }],
  '0015-node-limits': [],
  '0016-node-readings': [],
}
