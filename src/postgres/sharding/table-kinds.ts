/**
 * How each table is stored on Citus:
 *
 * - `account`: rows of accounts, sharded by `account_id`, so that all rows of an account are on one worker
 * - `topic`: the directory from topics to accounts, sharded by `topic`, since detection asks by topic
 * - `local`: on the coordinator
 */
export type TableKind = 'account' | 'topic' | 'local'

/** Every table of the schema. A table of a new migration gets its line here, and `migrate` shards it where the others are sharded. */
export const TABLE_KINDS: Readonly<Record<string, TableKind>> = {
  payments: 'account',
  payment_metadata: 'account',
  requests: 'account',
  refunds: 'account',
  refund_wallets: 'account',
  accepted_events: 'account',
  removed_events: 'account',
  reported_payers: 'account',
  idempotency_keys: 'account',
  account_changes: 'account',
  payment_changes: 'account',
  removed_payments: 'account',
  payment_statistics: 'account',
  reference_topics: 'topic',
  accounts: 'local',
  api_keys: 'local',
  audit_log: 'local',
  call_windows: 'local',
  watch_tickets: 'local',
  pending_replays: 'local',
  pending_enrichments: 'local',
  carried_payments: 'local',
  unmatched_events: 'local',
  webhook_endpoints: 'local',
  parked_deliveries: 'local',
  ended_deliveries: 'local',
  single_request_proxies: 'local',
  chain_state: 'local',
  chain_blocks: 'local',
  chain_contracts: 'local',
  chain_reports: 'local',
  chain_spans: 'local',
  node_limits: 'local',
  unproven_blocks: 'local',
  leases: 'local',
  settings: 'local',
  schema_steps: 'local',
}

/** A table that is sharded on Citus. */
export interface ShardedTable {
  readonly name: string
  /** Its shards are made by the hash of this column. */
  readonly column: 'account_id' | 'topic'
}

/** The sharded tables. The first gives the number of shards, and the other tables of accounts are placed with it. */
export const SHARDED_TABLES: readonly ShardedTable[] = Object.entries(TABLE_KINDS).flatMap(([name, kind]) =>
  kind === 'local' ? [] : [{ name, column: kind === 'account' ? 'account_id' : 'topic' }],
)
