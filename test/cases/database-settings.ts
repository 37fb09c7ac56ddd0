/** A setting of the role or the database that Waybill works with, and which it neither needs nor spreads. */
export interface SettingThatWorks {
  readonly name: string
  readonly value: string
  /** The first version of PostgreSQL that has it. */
  readonly since?: number
}

/** Settings of the table in docs/guides/postgresql.md that are not refused. */
export const settingsThatWork: readonly SettingThatWorks[] = [
  { name: 'DateStyle', value: 'German' },
  { name: 'DateStyle', value: 'SQL, DMY' },
  { name: 'DateStyle', value: 'Postgres, MDY' },
  { name: 'TimeZone', value: 'Asia/Kolkata' },
  { name: 'IntervalStyle', value: 'sql_standard' },
  { name: 'bytea_output', value: 'escape' },
  { name: 'extra_float_digits', value: '-15' },
  { name: 'standard_conforming_strings', value: 'off' },
  { name: 'array_nulls', value: 'off' },
  { name: 'quote_all_identifiers', value: 'on' },
  { name: 'client_encoding', value: 'LATIN1' },
  { name: 'lc_messages', value: 'C.UTF-8' },
  { name: 'lc_numeric', value: 'C.UTF-8' },
  { name: 'default_transaction_isolation', value: 'serializable' },
  { name: 'default_transaction_isolation', value: 'repeatable read' },
  { name: 'default_transaction_deferrable', value: 'on' },
  { name: 'statement_timeout', value: '250ms' },
  { name: 'lock_timeout', value: '5s' },
  { name: 'idle_in_transaction_session_timeout', value: '5s' },
  { name: 'idle_session_timeout', value: '1s' },
  { name: 'transaction_timeout', value: '30s', since: 17 },
  { name: 'plan_cache_mode', value: 'force_generic_plan' },
  { name: 'plan_cache_mode', value: 'force_custom_plan' },
  { name: 'jit', value: 'off' },
  { name: 'synchronous_commit', value: 'off' },
  { name: 'row_security', value: 'off' },
]
