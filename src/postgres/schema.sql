-- The schema. The first migration runs it, statement by statement; a semicolon at the end of a line ends one.
--
-- It stays as release 0.2.0 has it, and migrations change it (docs/internals/migrations.md).
--
-- Keys of tables with an account's rows begin with account_id, and no foreign key leaves the account, so that distributed PostgreSQL can shard
-- them by account. How each table is stored there: sharding/table-kinds.ts.
--
-- Addresses have 21 bytes (address family, then 20 bytes), hashes and references are raw bytes, request ids 33 bytes, amounts are in human
-- units, networks are canonical names, chain ids are CAIP-2. Text for filters and orders compares bytewise (collate "C").

-- This installation -------------------------------------------------------------------------------------------------------------------------

-- schema_steps, which remembers the migrations that ran, is made before them (migrations/applied-migrations.ts).

create table settings (
  name text primary key,
  value bytea not null
);

create table leases (
  name text primary key,
  owner text not null,
  expires_at timestamptz not null
);

-- Accounts and keys -------------------------------------------------------------------------------------------------------------------------

create table accounts (
  id integer primary key generated always as identity,
  name text collate "C" not null unique,
  created_at timestamptz(3) not null default now()
);

-- origins, shop: of a publishable key; null for a secret one.
-- share: the part of a process's running calls that nobody takes from the key; null for the usual one.
-- replaced_by: the id of the key that a rotation made.
create table api_keys (
  key_hash bytea primary key,
  id uuid not null unique,
  account_id integer not null,
  hint text not null,
  scopes text[] not null,
  calls_per_minute integer not null,
  created_at timestamptz(3) not null,
  expires_at timestamptz(3),
  revoked_at timestamptz(3),
  last_used_at timestamptz(3),
  origins text[],
  shop jsonb,
  share double precision,
  note text,
  replaced_by uuid
);
create index api_keys_account on api_keys (account_id);

-- Lines are only added.
create table audit_log (
  id bigint primary key generated always as identity,
  at timestamptz(3) not null,
  actor text not null,
  action text not null,
  key_id uuid,
  account text collate "C" not null,
  details jsonb not null default '{}'
);
create index audit_log_account on audit_log (account, id);

-- The calls counted in the current minute of a key. Unlogged: a crash of the server loses the counts of one minute.
create unlogged table call_windows (
  key_id uuid primary key,
  minute integer not null,
  used integer not null,
  granted integer not null
);

-- A browser's EventSource cannot send headers, so a ticket in the URL opens one watch. A ticket expires after a minute.
create table watch_tickets (
  ticket_hash bytea primary key,
  key_id text collate "C" not null,
  account_id integer not null,
  account_name text collate "C" not null,
  expires_at timestamptz(3) not null
);
create index watch_tickets_expiry on watch_tickets (expires_at);

-- Chains ------------------------------------------------------------------------------------------------------------------------------------

create table chain_state (
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
  updated_at timestamptz(3) not null,
  start_block bigint,
  start_since timestamptz(3),
  wanted_since timestamptz(3),
  list_changed_at timestamptz(0)
);

create table chain_contracts (
  chain_id text collate "C" not null,
  address bytea not null,
  from_block bigint not null,
  primary key (chain_id, address)
);

-- Blocks that are not final yet. account_ids: the accounts with events in them.
create table chain_blocks (
  chain_id text collate "C" not null,
  number bigint not null,
  hash bytea not null,
  timestamp timestamptz(0) not null,
  account_ids integer[] not null default '{}',
  primary key (chain_id, number)
);

-- Blocks that are read beside following.
create table chain_spans (
  chain_id text collate "C" not null,
  address bytea not null,
  from_block bigint not null,
  next_block bigint not null,
  until_block bigint not null,
  read_time timestamptz(0),
  primary key (chain_id, address, from_block)
);

-- What the process that follows a chain last reported about it, so that any process can answer how the chain does.
create table chain_reports (
  chain_id text collate "C" primary key,
  owner text not null,
  written_at timestamptz(3) not null,
  report jsonb not null
);

-- What was learned of the limits of a chain's nodes, so that a restart does not ask again what was refused, and how much of a daily budget is
-- spent. A URL may hold a key, so its hash stands for it; the host is for people.
create table node_limits (
  chain_id text collate "C" not null,
  url_hash text collate "C" not null,
  host text not null,
  learned jsonb,
  day date,
  used bigint not null default 0,
  primary key (chain_id, url_hash)
);

-- Blocks that a node gave and that are not proven yet: FOLLOWED and FILLED since its logs were last compared with another node's, UNCOMPARED where
-- that was not possible, WRONG where the node was found to answer wrongly.
create table unproven_blocks (
  chain_id text collate "C" not null,
  node text collate "C" not null,
  state text not null check (state in ('FOLLOWED', 'FILLED', 'UNCOMPARED', 'WRONG')),
  blocks int8multirange not null,
  primary key (chain_id, node, state)
);

-- Contracts created by Request's factory, each to pay one request with money that somebody else sent to it.
create table single_request_proxies (
  chain_id text collate "C" not null,
  address bytea not null,
  block_number bigint not null,
  primary key (chain_id, address)
);
create index single_request_proxies_block on single_request_proxies (chain_id, block_number);

-- Requests ----------------------------------------------------------------------------------------------------------------------------------

-- Which accounts wait for the events of a topic.
create table reference_topics (
  topic bytea not null,
  account_id integer not null,
  primary key (topic, account_id)
);

-- Topics whose past events are still to be matched, because their request was stored late; again: those that were matched too, because who paid was not
-- known then.
create table pending_replays (
  topic bytea not null,
  account_id integer not null,
  note bigint not null generated by default as identity,
  again boolean not null default false,
  primary key (topic, account_id)
);

-- What payments and refunds make of a request is written when they are settled, so that lists are filtered by it without reading payments:
-- status, the rank of its status (requestStatuses, from 1); paid, by final payments; pending, by others; held, of all less what was returned;
-- overpaid, null before something covers the request. allowed_payers: addresses, separated by spaces. expiry_logged: whether its expiry stands in the log of changes.
create table requests (
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
  allowed_payers text,
  created_at timestamptz(3) not null,
  expires_at timestamptz(3),
  cancelled_at timestamptz(3),
  title text,
  return_url text,
  metadata jsonb,
  status smallint not null default 1,
  paid numeric not null default 0,
  pending numeric not null default 0,
  held numeric not null default 0,
  overpaid boolean,
  expiry_logged boolean not null default false,
  primary key (account_id, request_id),
  unique (account_id, topic, payee)
);
create index requests_reference on requests (account_id, payment_reference);
create index requests_refund on requests (account_id, refund_topic) where refund_topic is not null;
create index requests_created on requests (account_id, created_at, request_id);
-- The status comes before the time: requests of one value and status are in the order of a list. A payment currency has its network in its id.
create index requests_status on requests (account_id, status, created_at, request_id);
create index requests_payee on requests (account_id, payee, status, created_at, request_id);
create index requests_payment_currency on requests (account_id, payment_currency, status, created_at, request_id);
create index requests_invoice_currency on requests (account_id, invoice_currency, status, created_at, request_id)
  where invoice_currency <> payment_currency;
create index requests_merchant_reference on requests (account_id, reference, status, created_at, request_id)
  where reference is not null;
-- Filters by which few requests are left: overpaid ones with those not decided, cancelled ones, and unpaid ones by their expiry.
create index requests_overpaid on requests (account_id, status, created_at, request_id)
  where overpaid is not false and status > 2;
create index requests_cancelled on requests (account_id, status, created_at, request_id)
  where cancelled_at is not null;
create index requests_unpaid on requests (account_id, status, created_at, request_id)
  include (expires_at, cancelled_at) where status <= 2;

-- Those whose expiry is still to be logged.
create index requests_expiring on requests (account_id, expires_at)
  where expires_at is not null and not expiry_logged and cancelled_at is null and status <= 2;

create table idempotency_keys (
  account_id integer not null,
  key text collate "C" not null,
  terms_hash bytea not null,
  request_id bytea not null,
  created_at timestamptz(3) not null,
  primary key (account_id, key)
);

-- Wallets from which an account refunds. A removed one keeps its row, because a refund is judged by the wallets registered at its time.
create table refund_wallets (
  account_id integer not null,
  address bytea not null,
  registration integer not null,
  registered_at timestamptz(3) not null,
  removed_at timestamptz(3),
  note text,
  primary key (account_id, address, registration)
);
create unique index refund_wallets_in_force on refund_wallets (account_id, address) where removed_at is null;

-- Payments ----------------------------------------------------------------------------------------------------------------------------------

-- event_index: the place in the transaction; log_index: in the block, which gives the order of the chain.
-- line_hash, line_updated_at: of the import line that the row was written from; line_hash is null once detection has changed it.
-- superseded: an imported payment that counts nowhere, because an event of the chain stands for it.
-- marks: bits of what is said against it (paymentMarks).
-- changed_at: the stamp of the transaction that last changed the row (account_changes); for rows that it copies, a setting of the transaction.
create table payments (
  account_id integer not null,
  id uuid not null,
  status smallint not null,
  type smallint,
  final boolean not null,
  imported boolean not null,
  detected boolean not null default false,
  superseded boolean not null default false,
  marks smallint not null default 0,
  metadata jsonb,
  event_index integer,
  log_index integer,
  block_number bigint,
  confirmations integer,
  timestamp timestamptz(0) not null,
  updated_at timestamptz(3) not null,
  changed_at timestamptz(3) not null
    default coalesce(nullif(current_setting('waybill.changed_at', true), '')::timestamptz, clock_timestamp()),
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
  line_hash bytea,
  line_updated_at timestamptz(3),
  primary key (account_id, id),
  unique (account_id, tx_hash, event_index, network)
);
-- PostgreSQL plans a prepared statement once for all values. It is to plan for the account and the wallets with the most payments: for a wallet
-- of few, any index and a sort would do as well.
alter table payments alter column account_id set (n_distinct = 5);
alter table payments alter column payer set (n_distinct = 20);
alter table payments alter column payee set (n_distinct = 20);
alter table payments alter column reference set (n_distinct = 20);
create index payments_not_final on payments (account_id, chain_id, block_number) where not final;
create index payments_superseded on payments (account_id, id) where superseded;
-- The indexes of searches begin with the columns compared by =, continue with the order of the answer and end with the id. What they include are
-- the columns of other filters, so that many entries are read without their rows. search/plan/sources.ts repeats them as data.
create index payments_date on payments (account_id, timestamp, id);
create index payments_changed on payments (account_id, changed_at, id);
create index payments_status on payments (account_id, status, timestamp, id)
  include (type, network, source_network, currency_symbol, currency, invoice_currency, amount, amount_in_usd, invoice_amount);
create index payments_network on payments (account_id, network, timestamp, id);
create index payments_currency on payments (account_id, currency_symbol, timestamp, id);
create index payments_usd on payments (account_id, amount_in_usd, id)
  include (timestamp, status, type, network, source_network, currency_symbol, currency, invoice_currency, reference);
create index payments_amount on payments (account_id, currency_symbol, amount, id)
  include (timestamp, status, type, network, source_network, currency, invoice_currency, amount_in_usd);
create index payments_invoice_amount on payments (account_id, invoice_currency, invoice_amount, id)
  include (timestamp, status, type, network, source_network, currency_symbol, currency) where invoice_currency is not null;
-- A search by payer and payee uses the payer's index, which has the payee: a payer usually has fewer payments.
create index payments_payer on payments (account_id, payer, status, timestamp, id)
  include (type, network, source_network, currency_symbol, currency, invoice_currency, amount, amount_in_usd, invoice_amount, payee);
create index payments_payer_usd on payments (account_id, payer, amount_in_usd, id) include (timestamp);
create index payments_payee on payments (account_id, payee, status, timestamp, id)
  include (type, network, source_network, currency_symbol, currency, invoice_currency, amount, amount_in_usd, invoice_amount);
create index payments_payee_usd on payments (account_id, payee, amount_in_usd, id) include (timestamp);
create index payments_source_network on payments (account_id, source_network, timestamp, id) include (network) where source_network <> network;
create index payments_request_id on payments (account_id, request_id, timestamp, id) where request_id is not null;
create index payments_payment_reference on payments (account_id, payment_reference, timestamp, id)
  where payment_reference is not null;
-- A merchant may give one reference to a million payments, for instance of a subscription.
create index payments_reference on payments (account_id, reference, status, timestamp, id)
  include (type, network, source_network, currency_symbol, currency, invoice_currency, amount, amount_in_usd, invoice_amount)
  where reference is not null;
create index payments_source_tx on payments (account_id, source_tx_hash) where source_tx_hash is not null;
-- For searches by the hash of a refund. Few payments have one.
create index payments_refund_tx on payments using gin (refunds jsonb_path_ops) where refunds <> '[]';

-- The metadata of payments, a row for each pair, with what searches sort by and check. pair: `key=value`.
create table payment_metadata (
  account_id integer not null,
  id uuid not null,
  pair text collate "C" not null,
  status smallint not null,
  timestamp timestamptz(0) not null,
  changed_at timestamptz(3) not null,
  type smallint,
  network text collate "C" not null,
  source_network text collate "C",
  currency_symbol text collate "C" not null,
  currency text collate "C" not null,
  invoice_currency text collate "C",
  amount numeric not null,
  amount_in_usd numeric,
  invoice_amount numeric,
  primary key (account_id, id, pair)
);
create index payment_metadata_pair on payment_metadata (account_id, pair, status, timestamp, id)
  include (type, network, source_network, currency_symbol, currency, invoice_currency, amount, amount_in_usd, invoice_amount);
create index payment_metadata_changed on payment_metadata (account_id, pair, changed_at, id);
create index payment_metadata_usd on payment_metadata (account_id, pair, amount_in_usd, id) include (timestamp);

create table refunds (
  account_id integer not null,
  tx_hash bytea not null,
  event_index integer not null,
  log_index integer,
  network text collate "C" not null,
  chain_id text collate "C" not null,
  request_id bytea not null,
  block_number bigint not null,
  timestamp timestamptz(0) not null,
  final boolean not null,
  amount numeric not null,
  currency text collate "C" not null,
  recipient bytea,
  primary key (account_id, tx_hash, event_index, network)
);
create index refunds_request on refunds (account_id, request_id);
create index refunds_not_final on refunds (account_id, chain_id, block_number) where not final;

-- Payments that were deleted, with the stamp of the transaction that did.
create table removed_payments (
  account_id integer not null,
  changed_at timestamptz(3) not null,
  id uuid not null,
  primary key (account_id, changed_at, id)
);

-- Writers of an account lock its row, so the order of changes is the order of commits. last_changed_at: the stamp of the last transaction that
-- changed payments; the next one has a later stamp. pruned_change: the highest change that was pruned.
create table account_changes (
  account_id integer not null,
  last_change bigint not null default 0,
  last_changed_at timestamptz(3),
  pruned_change bigint not null default 0,
  primary key (account_id)
) with (fillfactor = 50);

-- The log of changes; numbers have no gaps within an account. kind: 1 insert, 2 update, 3 delete of a payment; 4 a request is otherwise than
-- before: its balances, its cancellation, its expiry, or what an update changes. old: the row of payments before the change, null for an insert.
create table payment_changes (
  account_id integer not null,
  change bigint not null,
  kind smallint not null,
  payment_id uuid,
  at timestamptz(3) not null,
  old jsonb,
  changed_request bytea,
  primary key (account_id, change)
);
create index payment_changes_payment on payment_changes (account_id, payment_id, change) where old is not null;

-- The exact number of payments of each combination, and times that bound them, which are widened and never narrowed. Unknown values:
-- source_network and invoice_currency '', type -1. seq numbers the combinations in the order in which they were first written; writers of an
-- account are serialised, so a reader that knows those up to the highest number knows all of them.
create table payment_statistics (
  account_id integer not null,
  network text collate "C" not null,
  source_network text collate "C" not null,
  currency text collate "C" not null,
  currency_symbol text collate "C" not null,
  invoice_currency text collate "C" not null,
  type smallint not null,
  status smallint not null,
  n bigint not null,
  first_at timestamptz(0) not null,
  last_at timestamptz(0) not null,
  seq bigint not null generated by default as identity,
  primary key (account_id, network, source_network, currency, invoice_currency, type, status)
) with (fillfactor = 70);
create index payment_statistics_seq on payment_statistics (account_id, seq);

-- Detection's queues and what it remembers ----------------------------------------------------------------------------------------------------

-- Events that are no payments, with the reason; account 0 where no account waits for them.
create table unmatched_events (
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
);
create index unmatched_events_topic on unmatched_events (topic);
create index unmatched_events_block on unmatched_events (chain_id, block_number);
create index unmatched_events_time on unmatched_events (timestamp, chain_id, block_number, tx_hash, event_index, account_id);
create index unmatched_events_account on unmatched_events (account_id, timestamp, chain_id, block_number, tx_hash, event_index);

-- Events that an operator accepted for an account although the rules do not count them.
create table accepted_events (
  account_id integer not null,
  chain_id text collate "C" not null,
  tx_hash bytea not null,
  event_index integer not null,
  accepted_as text not null,
  topic bytea not null,
  event jsonb not null,
  accepted_by text not null,
  accepted_at timestamptz(3) not null,
  note text not null,
  primary key (account_id, chain_id, tx_hash, event_index)
);

-- Transactions in which detection had counted an event of a request that a reorg removed: imported payments of them count nothing.
create table removed_events (
  account_id integer not null,
  network text collate "C" not null,
  tx_hash bytea not null,
  request_id bytea not null,
  primary key (account_id, tx_hash, network, request_id)
);

-- Who paid what a bridge delivered, as the bridge reported it, by event.
create table reported_payers (
  account_id integer not null,
  chain_id text collate "C" not null,
  tx_hash bytea not null,
  event_index integer not null,
  payment_id uuid not null,
  topic bytea not null,
  payer bytea not null,
  source_tx_hash bytea not null,
  is_proven boolean not null,
  primary key (account_id, chain_id, tx_hash, event_index)
);

-- Payments delivered by a bridge whose payer, source network and source transaction are not known yet, and where on a source chain the origin was
-- seen, until that block is final.
create table carried_payments (
  account_id integer not null,
  payment_id uuid not null,
  chain_id text collate "C" not null,
  tx_hash bytea not null,
  attempts integer not null default 0,
  due_at timestamptz(3) not null,
  source_chain_id text collate "C",
  source_tx_hash bytea,
  source_block_number bigint,
  source_block_hash bytea,
  primary key (account_id, payment_id)
);
create index carried_payments_due on carried_payments (due_at);

-- Transactions with payments of which a figure is unknown that may be readable later (a price, a trace, a fee). due_at: null where it is not looked
-- up any more.
create table pending_enrichments (
  chain_id text collate "C" not null,
  account_id integer not null,
  tx_hash bytea not null,
  block_number bigint not null,
  lacks text[] not null,
  attempts integer not null default 0,
  queued_at timestamptz(3) not null,
  due_at timestamptz(3),
  primary key (chain_id, account_id, tx_hash)
);
create index pending_enrichments_due on pending_enrichments (chain_id, due_at) where due_at is not null;
create index pending_enrichments_block on pending_enrichments (chain_id, block_number);

-- Webhooks ----------------------------------------------------------------------------------------------------------------------------------

-- Where changes are sent. position: the last change that is sent, parked or of no interest to it. generation: counts what callers change, so that
-- whoever sends begins anew. secret_number: from it and the secret of this installation the endpoint's secret is derived; the one before is valid
-- until old_secret_until. lost_changes: how many were pruned before they were sent. ended: how many deliveries have ended.
create table webhook_endpoints (
  account_id integer not null,
  id uuid not null,
  url text not null,
  kinds text[] not null,
  filter text not null,
  description text,
  created_at timestamptz(3) not null,
  secret_number integer not null default 1,
  old_secret_until timestamptz(3),
  paused_at timestamptz(3),
  pause_reason text,
  generation integer not null default 1,
  position bigint not null,
  lost_changes bigint not null default 0,
  ended bigint not null default 0,
  primary key (account_id, id)
);

-- Deliveries that failed, and those that wait behind one because they are of the same payment or request (subject): these have no due_at.
create table parked_deliveries (
  account_id integer not null,
  endpoint_id uuid not null,
  change bigint not null,
  changed_at timestamptz(3) not null,
  kind text not null,
  subject text collate "C" not null,
  attempts integer not null default 0,
  attempted_at timestamptz(3),
  due_at timestamptz(3),
  status smallint,
  failure text,
  primary key (account_id, endpoint_id, change)
);
create index parked_deliveries_subject on parked_deliveries (account_id, endpoint_id, subject, change);
create index parked_deliveries_due on parked_deliveries (account_id, endpoint_id, due_at) where due_at is not null;

-- The last deliveries of an endpoint that ended; a later one overwrites the oldest. nth: the number of the delivery, whose remainder is its slot.
create table ended_deliveries (
  account_id integer not null,
  endpoint_id uuid not null,
  slot smallint not null,
  nth bigint not null,
  change bigint not null,
  changed_at timestamptz(3) not null,
  kind text not null,
  subject text collate "C" not null,
  attempts integer not null,
  attempted_at timestamptz(3) not null,
  status smallint,
  failure text,
  primary key (account_id, endpoint_id, slot)
);
