-- Written by "npm run schema:dump" from a database with all migrations. Do not edit.

create table accepted_events (
  account_id integer not null,
  chain_id text collate "C" not null,
  tx_hash bytea not null,
  event_index integer not null,
  accepted_as text not null,
  topic bytea not null,
  event jsonb not null,
  accepted_by text not null,
  accepted_at timestamp(3) with time zone not null,
  note text not null,
  constraint accepted_events_pkey PRIMARY KEY (account_id, chain_id, tx_hash, event_index)
);

create table account_changes (
  account_id integer not null,
  last_change bigint not null default 0,
  pruned_change bigint not null default 0,
  constraint account_changes_pkey PRIMARY KEY (account_id)
) with (fillfactor=50);

create table accounts (
  id integer not null generated always as identity,
  name text collate "C" not null,
  created_at timestamp(3) with time zone not null default now(),
  constraint accounts_pkey PRIMARY KEY (id),
  constraint accounts_name_key UNIQUE (name)
);

create table api_keys (
  key_hash bytea not null,
  id uuid not null,
  account_id integer not null,
  hint text not null,
  scopes text[] not null,
  calls_per_minute integer not null,
  created_at timestamp(3) with time zone not null,
  expires_at timestamp(3) with time zone,
  revoked_at timestamp(3) with time zone,
  last_used_at timestamp(3) with time zone,
  origins text[],
  share double precision,
  constraint api_keys_pkey PRIMARY KEY (key_hash),
  constraint api_keys_id_key UNIQUE (id)
);
CREATE INDEX api_keys_account ON api_keys USING btree (account_id);

create table audit_log (
  id bigint not null generated always as identity,
  at timestamp(3) with time zone not null,
  actor text not null,
  action text not null,
  key_id uuid,
  account text collate "C" not null,
  details jsonb not null default '{}'::jsonb,
  constraint audit_log_pkey PRIMARY KEY (id)
);

create table call_windows (
  key_id uuid not null,
  minute integer not null,
  used integer not null,
  granted integer not null,
  constraint call_windows_pkey PRIMARY KEY (key_id)
);

create table carried_payments (
  account_id integer not null,
  payment_id uuid not null,
  chain_id text collate "C" not null,
  tx_hash bytea not null,
  attempts integer not null default 0,
  due_at timestamp(3) with time zone not null,
  source_chain_id text collate "C",
  source_tx_hash bytea,
  source_block_number bigint,
  source_block_hash bytea,
  constraint carried_payments_pkey PRIMARY KEY (account_id, payment_id)
);
CREATE INDEX carried_payments_due ON carried_payments USING btree (due_at);

create table chain_blocks (
  chain_id text collate "C" not null,
  number bigint not null,
  hash bytea not null,
  timestamp timestamp(0) with time zone not null,
  account_ids integer[] not null default '{}'::integer[],
  constraint chain_blocks_pkey PRIMARY KEY (chain_id, number)
);

create table chain_contracts (
  chain_id text collate "C" not null,
  address bytea not null,
  from_block bigint not null,
  constraint chain_contracts_pkey PRIMARY KEY (chain_id, address)
);

create table chain_reports (
  chain_id text collate "C" not null,
  owner text not null,
  written_at timestamp(3) with time zone not null,
  report jsonb not null,
  constraint chain_reports_pkey PRIMARY KEY (chain_id)
);

create table chain_spans (
  chain_id text collate "C" not null,
  address bytea not null,
  from_block bigint not null,
  next_block bigint not null,
  until_block bigint not null,
  read_time timestamp(0) with time zone,
  constraint chain_spans_pkey PRIMARY KEY (chain_id, address, from_block)
);

create table chain_state (
  chain_id text collate "C" not null,
  network text collate "C" not null,
  genesis_hash bytea not null,
  scanned_block bigint not null,
  scanned_hash bytea not null,
  scanned_time timestamp(0) with time zone not null,
  head_block bigint not null,
  final_block bigint not null,
  has_finalized_tag boolean not null default false,
  alarm text,
  updated_at timestamp(3) with time zone not null,
  start_block bigint,
  start_since timestamp(3) with time zone,
  wanted_since timestamp(3) with time zone,
  constraint chain_state_pkey PRIMARY KEY (chain_id)
);

create table idempotency_keys (
  account_id integer not null,
  key text collate "C" not null,
  terms_hash bytea not null,
  request_id bytea not null,
  created_at timestamp(3) with time zone not null,
  constraint idempotency_keys_pkey PRIMARY KEY (account_id, key)
);

create table leases (
  name text not null,
  owner text not null,
  expires_at timestamp with time zone not null,
  constraint leases_pkey PRIMARY KEY (name)
);

create table node_limits (
  chain_id text collate "C" not null,
  url_hash text collate "C" not null,
  host text not null,
  learned jsonb,
  day date,
  used bigint not null default 0,
  constraint node_limits_pkey PRIMARY KEY (chain_id, url_hash)
);

create table node_readings (
  chain_id text collate "C" not null,
  node text collate "C" not null,
  lane text not null,
  from_block bigint not null,
  to_block bigint not null,
  constraint node_readings_pkey PRIMARY KEY (chain_id, node, lane, from_block)
);

create table payment_changes (
  account_id integer not null,
  change bigint not null,
  kind smallint not null,
  payment_id uuid not null,
  at timestamp(3) with time zone not null,
  old jsonb,
  constraint payment_changes_pkey PRIMARY KEY (account_id, change)
);
CREATE INDEX payment_changes_payment ON payment_changes USING btree (account_id, payment_id, change) WHERE old IS NOT NULL;

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
  first_at timestamp(0) with time zone not null,
  last_at timestamp(0) with time zone not null,
  seq bigint not null generated by default as identity,
  priced boolean not null default true,
  constraint payment_statistics_pkey PRIMARY KEY (account_id, network, source_network, currency, invoice_currency, type, status)
) with (fillfactor=70);
CREATE INDEX payment_statistics_seq ON payment_statistics USING btree (account_id, seq);

create table payments (
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
  timestamp timestamp(0) with time zone not null,
  updated_at timestamp(3) with time zone not null,
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
  fees jsonb not null default '[]'::jsonb,
  exchange_rates jsonb not null default '[]'::jsonb,
  gas jsonb,
  refunds jsonb not null default '[]'::jsonb,
  status_history jsonb not null default '[]'::jsonb,
  line_hash bytea,
  log_index integer,
  superseded boolean default false,
  line_updated_at timestamp(3) with time zone,
  constraint payments_pkey PRIMARY KEY (account_id, id),
  constraint payments_account_id_tx_hash_event_index_network_key UNIQUE (account_id, tx_hash, event_index, network)
);
CREATE INDEX payments_amount ON payments USING btree (account_id, currency_symbol, amount, id) INCLUDE ("timestamp", status, type, network, source_network, currency, invoice_currency);
CREATE INDEX payments_cell ON payments USING btree (account_id, status, network, currency_symbol, "timestamp", id) INCLUDE (type, source_network, currency, invoice_currency, amount, amount_in_usd, invoice_amount);
CREATE INDEX payments_date ON payments USING btree (account_id, "timestamp", id);
CREATE INDEX payments_invoice_amount ON payments USING btree (account_id, invoice_currency, invoice_amount, id) INCLUDE ("timestamp", status, type, network, source_network, currency_symbol, currency) WHERE invoice_currency IS NOT NULL;
CREATE INDEX payments_month_usd ON payments USING btree (account_id, date_bin('30 days'::interval, "timestamp", '2000-01-01 00:00:00+00'::timestamp with time zone), amount_in_usd, id) INCLUDE ("timestamp", status, network, source_network);
CREATE INDEX payments_not_final ON payments USING btree (account_id, chain_id, block_number) WHERE NOT final;
CREATE INDEX payments_payee ON payments USING btree (account_id, payee, status, "timestamp", id) INCLUDE (type, network, source_network, currency_symbol, currency, invoice_currency, amount, amount_in_usd, invoice_amount);
CREATE INDEX payments_payee_usd ON payments USING btree (account_id, payee, amount_in_usd, id) INCLUDE ("timestamp", status, type, network, source_network, currency_symbol, currency, invoice_currency);
CREATE INDEX payments_payer ON payments USING btree (account_id, payer, status, "timestamp", id) INCLUDE (type, network, source_network, currency_symbol, currency, invoice_currency, amount, amount_in_usd, invoice_amount, payee);
CREATE INDEX payments_payer_usd ON payments USING btree (account_id, payer, amount_in_usd, id) INCLUDE ("timestamp", status, type, network, source_network, currency_symbol, currency, invoice_currency, payee);
CREATE INDEX payments_payment_reference ON payments USING btree (account_id, payment_reference, status, "timestamp", id) WHERE payment_reference IS NOT NULL;
CREATE INDEX payments_reference ON payments USING btree (account_id, reference, status, "timestamp", id) INCLUDE (type, network, source_network, currency_symbol, currency, invoice_currency, amount, amount_in_usd, invoice_amount) WHERE reference IS NOT NULL;
CREATE INDEX payments_refund_tx ON payments USING gin (refunds jsonb_path_ops) WHERE refunds <> '[]'::jsonb;
CREATE INDEX payments_request_id ON payments USING btree (account_id, request_id, status, "timestamp", id) WHERE request_id IS NOT NULL;
CREATE INDEX payments_source_network ON payments USING btree (account_id, source_network, "timestamp", id) INCLUDE (status, type, network, currency_symbol, currency, invoice_currency, amount_in_usd) WHERE source_network <> network;
CREATE INDEX payments_source_tx ON payments USING btree (account_id, source_tx_hash) WHERE source_tx_hash IS NOT NULL;
CREATE INDEX payments_status ON payments USING btree (account_id, status, "timestamp", id) INCLUDE (type, network, source_network, currency_symbol, currency, invoice_currency, amount, amount_in_usd, invoice_amount);
CREATE INDEX payments_superseded ON payments USING btree (account_id, id) WHERE superseded;
CREATE INDEX payments_usd ON payments USING btree (account_id, amount_in_usd, id) INCLUDE ("timestamp", status, type, network, source_network, currency_symbol, currency, invoice_currency, reference);

create table pending_enrichments (
  chain_id text collate "C" not null,
  account_id integer not null,
  tx_hash bytea not null,
  block_number bigint not null,
  lacks text[] not null,
  attempts integer not null default 0,
  queued_at timestamp(3) with time zone not null,
  due_at timestamp(3) with time zone,
  constraint pending_enrichments_pkey PRIMARY KEY (chain_id, account_id, tx_hash)
);
CREATE INDEX pending_enrichments_block ON pending_enrichments USING btree (chain_id, block_number);
CREATE INDEX pending_enrichments_due ON pending_enrichments USING btree (chain_id, due_at) WHERE due_at IS NOT NULL;

create table pending_replays (
  topic bytea not null,
  account_id integer not null,
  note bigint not null generated by default as identity,
  constraint pending_replays_pkey PRIMARY KEY (topic, account_id)
);

create table pending_rereads (
  chain_id text collate "C" not null,
  node text collate "C" not null,
  from_block bigint not null,
  to_block bigint not null,
  is_wrong boolean not null,
  constraint pending_rereads_pkey PRIMARY KEY (chain_id, node, from_block)
);

create table reference_topics (
  topic bytea not null,
  account_id integer not null,
  constraint reference_topics_pkey PRIMARY KEY (topic, account_id)
);

create table refund_wallets (
  account_id integer not null,
  address bytea not null,
  registration integer not null,
  registered_at timestamp(3) with time zone not null,
  removed_at timestamp(3) with time zone,
  note text,
  constraint refund_wallets_pkey PRIMARY KEY (account_id, address, registration)
);
CREATE UNIQUE INDEX refund_wallets_in_force ON refund_wallets USING btree (account_id, address) WHERE removed_at IS NULL;

create table refunds (
  account_id integer not null,
  tx_hash bytea not null,
  event_index integer not null,
  network text collate "C" not null,
  chain_id text collate "C" not null,
  request_id bytea not null,
  block_number bigint not null,
  timestamp timestamp(0) with time zone not null,
  final boolean not null,
  amount numeric not null,
  currency text collate "C" not null,
  recipient bytea,
  log_index integer,
  constraint refunds_pkey PRIMARY KEY (account_id, tx_hash, event_index, network)
);
CREATE INDEX refunds_not_final ON refunds USING btree (account_id, chain_id, block_number) WHERE NOT final;
CREATE INDEX refunds_request ON refunds USING btree (account_id, request_id);

create table removed_events (
  account_id integer not null,
  network text collate "C" not null,
  tx_hash bytea not null,
  request_id bytea not null,
  constraint removed_events_pkey PRIMARY KEY (account_id, tx_hash, network, request_id)
);

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
  created_at timestamp(3) with time zone not null,
  expires_at timestamp(3) with time zone,
  cancelled_at timestamp(3) with time zone,
  status smallint not null default 1,
  overpaid boolean,
  paid numeric default 0,
  pending numeric default 0,
  held numeric default 0,
  constraint requests_pkey PRIMARY KEY (account_id, request_id),
  constraint requests_account_id_topic_payee_key UNIQUE (account_id, topic, payee)
);
CREATE INDEX requests_cancelled ON requests USING btree (account_id, status, created_at, request_id) INCLUDE (payee, network, payment_currency, invoice_currency) WHERE cancelled_at IS NOT NULL;
CREATE INDEX requests_cell ON requests USING btree (account_id, network, payment_currency, invoice_currency, status, created_at, request_id);
CREATE INDEX requests_created ON requests USING btree (account_id, created_at, request_id);
CREATE INDEX requests_merchant_reference ON requests USING btree (account_id, reference, status, created_at, request_id) WHERE reference IS NOT NULL;
CREATE INDEX requests_overpaid ON requests USING btree (account_id, status, created_at, request_id) WHERE overpaid IS NOT FALSE AND status > 2;
CREATE INDEX requests_payee ON requests USING btree (account_id, payee, network, payment_currency, invoice_currency, status, created_at, request_id);
CREATE INDEX requests_reference ON requests USING btree (account_id, payment_reference);
CREATE INDEX requests_refund ON requests USING btree (account_id, refund_topic) WHERE refund_topic IS NOT NULL;
CREATE INDEX requests_status ON requests USING btree (account_id, status, created_at, request_id);
CREATE INDEX requests_unpaid ON requests USING btree (account_id, status, created_at, request_id) INCLUDE (expires_at, cancelled_at) WHERE status <= 2;

create table schema_migrations (
  name text not null,
  applied_at timestamp with time zone not null default now(),
  constraint schema_migrations_pkey PRIMARY KEY (name)
);

create table schema_steps (
  name text not null,
  needs text,
  applied_at timestamp with time zone not null default now(),
  constraint schema_steps_pkey PRIMARY KEY (name)
);

create table settings (
  name text not null,
  value bytea not null,
  constraint settings_pkey PRIMARY KEY (name)
);

create table single_request_proxies (
  chain_id text collate "C" not null,
  address bytea not null,
  block_number bigint not null,
  constraint single_request_proxies_pkey PRIMARY KEY (chain_id, address)
);
CREATE INDEX single_request_proxies_block ON single_request_proxies USING btree (chain_id, block_number);

create table told_payers (
  account_id integer not null,
  chain_id text collate "C" not null,
  tx_hash bytea not null,
  event_index integer not null,
  payment_id uuid not null,
  topic bytea not null,
  payer bytea not null,
  source_tx_hash bytea not null,
  is_proven boolean not null,
  constraint told_payers_pkey PRIMARY KEY (account_id, chain_id, tx_hash, event_index)
);

create table unmatched_events (
  chain_id text collate "C" not null,
  tx_hash bytea not null,
  event_index integer not null,
  account_id integer not null default 0,
  reason text not null,
  topic bytea not null,
  block_number bigint not null,
  timestamp timestamp(0) with time zone not null,
  event jsonb not null,
  constraint unmatched_events_pkey PRIMARY KEY (chain_id, tx_hash, event_index, account_id)
);
CREATE INDEX unmatched_events_account ON unmatched_events USING btree (account_id, "timestamp", chain_id, block_number, tx_hash, event_index);
CREATE INDEX unmatched_events_block ON unmatched_events USING btree (chain_id, block_number);
CREATE INDEX unmatched_events_time ON unmatched_events USING btree ("timestamp", chain_id, block_number, tx_hash, event_index, account_id);
CREATE INDEX unmatched_events_topic ON unmatched_events USING btree (topic);

create table watch_tickets (
  ticket_hash bytea not null,
  key_id text collate "C" not null,
  account_id integer not null,
  account_name text collate "C" not null,
  expires_at timestamp(3) with time zone not null,
  constraint watch_tickets_pkey PRIMARY KEY (ticket_hash)
);
CREATE INDEX watch_tickets_expiry ON watch_tickets USING btree (expires_at);
