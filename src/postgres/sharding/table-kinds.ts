/** A table that is sharded on Citus. All others are on the coordinator. */
export interface ShardedTable {
  readonly name: string
  /**
   * Its shards are made by the hash of this column: by `account_id`, so that all rows of an account are on one worker; the directory from topics to
   * accounts by `topic`, since detection asks by topic.
   */
  readonly column: 'account_id' | 'topic'
}

/** The tables of accounts' rows. A table of a new migration gets its place here, and `migrate` shards it where the others are sharded. */
const OF_ACCOUNTS = [
  'payments',
  'payment_metadata',
  'requests',
  'refunds',
  'refund_wallets',
  'accepted_events',
  'removed_events',
  'reported_payers',
  'idempotency_keys',
  'account_changes',
  'payment_changes',
  'removed_payments',
  'payment_statistics',
]

/** The sharded tables. The first gives the number of shards, and the other tables of accounts are placed with it. */
export const SHARDED_TABLES: readonly ShardedTable[] = [
  ...OF_ACCOUNTS.map((name) => ({ name, column: 'account_id' }) as const),
  { name: 'reference_topics', column: 'topic' },
]
