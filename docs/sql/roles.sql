-- Two roles for the database that you are connected to: the owner owns the tables and runs `waybill migrate`; the server runs everything else,
-- and can neither create nor change nor drop a table, nor change or delete a line of the audit log. Run it as a superuser, before the first
-- migration or after it. Running it again changes nothing but grants that are missing or too many.
--
--   psql -v ON_ERROR_STOP=1 -f docs/sql/roles.sql 'postgres://postgres@host/waybill'
--
-- The roles are waybill_owner and waybill_server. Other names:
--
--   psql -v ON_ERROR_STOP=1 -c "set waybill.owner = 'our owner'" -c "set waybill.server = 'our server'" -f docs/sql/roles.sql 'postgres://…'
--
-- A role that exists keeps its password; choose those of new ones here.

do $roles$
declare
  owner_role text := coalesce(nullif(current_setting('waybill.owner', true), ''), 'waybill_owner');
  server_role text := coalesce(nullif(current_setting('waybill.server', true), ''), 'waybill_server');
begin
  if not exists (select from pg_roles where rolname = owner_role) then
    execute format('create role %I login password %L', owner_role, 'choose-one');
  end if;
  if not exists (select from pg_roles where rolname = server_role) then
    execute format('create role %I login password %L', server_role, 'choose-another');
  end if;

  -- imports stage their lines in temporary tables
  execute format('grant connect, temporary on database %I to %I, %I', current_database(), owner_role, server_role);

  execute format('grant usage, create on schema public to %I', owner_role);
  execute format('grant usage on schema public to %I', server_role);

  -- tables of later migrations
  execute format('alter default privileges for role %I in schema public
    grant select, insert, update, delete on tables to %I', owner_role, server_role);
  execute format('alter default privileges for role %I in schema public
    grant usage, select on sequences to %I', owner_role, server_role);

  -- tables of earlier migrations, which the role that ran them keeps
  execute format('grant select, insert, update, delete on all tables in schema public to %I', server_role);
  execute format('grant usage, select on all sequences in schema public to %I', server_role);

  -- lines of the audit log are only added; where there are no tables yet, the migration does the same
  if to_regclass('public.audit_log') is not null then
    execute format('revoke update, delete, truncate on public.audit_log from %I', server_role);
  end if;

  -- needed behind a pooler, where Waybill sets nothing; harmless elsewhere
  execute format('alter role %I in database %I set statement_timeout = %L', server_role, current_database(), '60s');
end
$roles$;
