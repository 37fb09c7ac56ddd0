import type { Migration } from '../migrate.ts'

/**
 * The first schema. Tables that hold an account's rows have keys that begin with `account_id`, and no foreign key leaves the
 * account, so that a distributed PostgreSQL can shard them by account; directories stand apart.
 *
 * Stored forms: addresses are 21 bytes (family, then the 20 of the address), hashes and references raw bytes, request ids 33 bytes,
 * amounts human units, chains their canonical names. Text that is filtered or sorted by compares bytewise (`collate "C"`).
 */
const statements = [
  // Directories
  `create table settings (
    name text primary key,
    value bytea not null
  )`,
  `create table leases (
    name text primary key,
    owner text not null,
    expires_at timestamptz not null
  )`,
  `create table accounts (
    id integer primary key generated always as identity,
    name text collate "C" not null unique,
    created_at timestamptz(3) not null default now()
  )`,
  `create table api_keys (
    key_hash bytea primary key,
    id uuid not null unique,
    account_id integer not null,
    hint text not null,
    scopes text[] not null,
    calls_per_minute integer,
    created_at timestamptz(3) not null,
    expires_at timestamptz(3),
    revoked_at timestamptz(3),
    last_used_at timestamptz(3)
  )`,
  `create index api_keys_account on api_keys (account_id)`,
  `create table reference_topics (
    topic bytea not null,
    account_id integer not null,
    primary key (topic, account_id)
  )`,
  `create table pending_replays (
    topic bytea not null,
    account_id integer not null,
    primary key (topic, account_id)
  )`,
  `create table chain_state (
    chain_id text collate "C" primary key,
    network text collate "C" not null,
    genesis_hash bytea not null,
    scanned_block bigint not null,
    scanned_hash bytea not null,
    scanned_time timestamptz(0) not null,
    head_block bigint not null,
    final_block bigint not null,
    has_finalized_tag boolean not null default false,
    alarm text,
    updated_at timestamptz(3) not null
  )`,
  // filled_block to fill_until: what is still to be read of a contract that was added when the chain was past its first block
  `create table chain_contracts (
    chain_id text collate "C" not null,
    address bytea not null,
    from_block bigint not null,
    filled_block bigint not null,
    fill_until bigint not null,
    primary key (chain_id, address)
  )`,
  `create table chain_blocks (
    chain_id text collate "C" not null,
    number bigint not null,
    hash bytea not null,
    timestamp timestamptz(0) not null,
    account_ids integer[] not null default '{}',
    primary key (chain_id, number)
  )`,
  `create table unmatched_events (
    chain_id text collate "C" not null,
    tx_hash bytea not null,
    event_index integer not null,
    account_id integer not null default 0,
    reason text not null,
    topic bytea not null,
    block_number bigint not null,
    timestamp timestamptz(0) not null,
    event jsonb not null,
    primary key (chain_id, tx_hash, event_index, account_id)
  )`,
  `create index unmatched_events_topic on unmatched_events (topic)`,
  `create index unmatched_events_block on unmatched_events (chain_id, block_number)`,
  // Tables of an account's rows
  `create table requests (
    account_id integer not null,
    request_id bytea not null,
    salt bytea not null,
    payment_reference bytea not null,
    topic bytea not null,
    payee bytea not null,
    amount numeric not null,
    invoice_currency text collate "C" not null,
    payment_currency text collate "C" not null,
    network text collate "C" not null,
    reference text collate "C",
    refund_address bytea,
    refund_topic bytea,
    surplus_returned numeric not null default 0,
    created_at timestamptz(3) not null,
    primary key (account_id, request_id),
    unique (account_id, topic, payee)
  )`,
  `create index requests_reference on requests (account_id, payment_reference)`,
  `create index requests_created on requests (account_id, created_at, request_id)`,
  `create index requests_refund on requests (account_id, refund_topic) where refund_topic is not null`,
  `create table idempotency_keys (
    account_id integer not null,
    key text collate "C" not null,
    terms_hash bytea not null,
    request_id bytea not null,
    created_at timestamptz(3) not null,
    primary key (account_id, key)
  )`,
  `create table payments (
    account_id integer not null,
    id uuid not null,
    status smallint not null,
    type smallint,
    final boolean not null,
    imported boolean not null,
    detected boolean not null default false,
    event_index integer,
    block_number bigint,
    confirmations integer,
    timestamp timestamptz(0) not null,
    updated_at timestamptz(3) not null,
    network text collate "C" not null,
    source_network text collate "C",
    chain_id text collate "C",
    currency text collate "C" not null,
    currency_symbol text collate "C" not null,
    invoice_currency text collate "C",
    amount numeric not null,
    amount_in_usd numeric,
    invoice_amount numeric,
    refunded_amount numeric not null default 0,
    tx_hash bytea,
    source_tx_hash bytea,
    payer bytea,
    payee bytea,
    initiator bytea,
    token_address bytea,
    request_id bytea,
    payment_reference bytea,
    reference text collate "C",
    fees jsonb not null default '[]',
    exchange_rates jsonb not null default '[]',
    gas jsonb,
    refunds jsonb not null default '[]',
    status_history jsonb not null default '[]',
    primary key (account_id, id),
    unique (account_id, tx_hash, event_index, network)
  )`,
  `create index payments_timestamp on payments (account_id, timestamp, id)`,
  `create index payments_usd on payments (account_id, amount_in_usd, id)`,
  `create index payments_currency_amount on payments (account_id, currency_symbol, amount, id)`,
  `create index payments_invoice_amount on payments (account_id, invoice_currency, invoice_amount, id)`,
  `create index payments_status on payments (account_id, status, timestamp, id)`,
  `create index payments_payer on payments (account_id, payer, timestamp, id)`,
  `create index payments_payee on payments (account_id, payee, timestamp, id)`,
  `create index payments_network on payments (account_id, network, timestamp, id)`,
  `create index payments_source_tx on payments (account_id, source_tx_hash)`,
  `create index payments_request on payments (account_id, request_id)`,
  `create index payments_payment_reference on payments (account_id, payment_reference)`,
  `create index payments_merchant_reference on payments (account_id, reference)`,
  `create index payments_not_final on payments (account_id, chain_id, block_number) where not final`,
  `create table refunds (
    account_id integer not null,
    tx_hash bytea not null,
    event_index integer not null,
    network text collate "C" not null,
    chain_id text collate "C" not null,
    request_id bytea not null,
    block_number bigint not null,
    timestamp timestamptz(0) not null,
    final boolean not null,
    amount numeric not null,
    currency text collate "C" not null,
    primary key (account_id, tx_hash, event_index, network)
  )`,
  `create index refunds_request on refunds (account_id, request_id)`,
  `create index refunds_not_final on refunds (account_id, chain_id, block_number) where not final`,
]

export const initial: Migration = {
  name: '0001-initial',
  async up(knex) {
    for (const statement of statements) await knex.raw(statement)
  },
}
