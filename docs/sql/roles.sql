-- Two roles for a database named waybill: waybill_owner owns the tables and runs `waybill migrate`; waybill_server runs everything else,
-- and can neither create nor change nor drop a table. Run it as a superuser, connected to that database, before the first migration or
-- after it:
--
--   psql -v ON_ERROR_STOP=1 -f docs/sql/roles.sql 'postgres://postgres@host/waybill'

create role waybill_owner login password 'choose-one';
create role waybill_server login password 'choose-another';

grant connect on database waybill to waybill_owner, waybill_server;
-- imports stage their lines in temporary tables
grant temporary on database waybill to waybill_owner, waybill_server;

grant usage, create on schema public to waybill_owner;
grant usage on schema public to waybill_server;

-- tables of later migrations
alter default privileges for role waybill_owner in schema public grant select, insert, update, delete on tables to waybill_server;
alter default privileges for role waybill_owner in schema public grant usage, select on sequences to waybill_server;

-- tables of earlier migrations, which the role that ran them keeps
grant select, insert, update, delete on all tables in schema public to waybill_server;
grant usage, select on all sequences in schema public to waybill_server;

-- needed behind a pooler, where Waybill sets nothing; harmless elsewhere
alter role waybill_server in database waybill set statement_timeout = '60s';
