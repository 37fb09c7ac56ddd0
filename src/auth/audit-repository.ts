import type { Knex } from 'knex'

/** What was done to a key. */
export type AuditAction = 'CREATE_KEY' | 'ROTATE_KEY' | 'REVOKE_KEY'

/** One change of a key. */
export interface AuditEntry {
  readonly at: Date
  /** Who did it: `user@host` of the command, or `service`. */
  readonly actor: string
  readonly action: AuditAction
  readonly keyId: string
  /** Name of the account that the key belongs to. */
  readonly account: string
  /** What a change says of itself, such as scopes and rate; never the key. */
  readonly details: Readonly<Record<string, unknown>>
}

/** Adds a line, in the transaction of the change that it tells of. Lines are never changed or deleted. */
export async function insertAuditEntry(knex: Knex, entry: AuditEntry): Promise<void> {
  const { at, actor, action, keyId, account, details } = entry
  await knex('audit_log').insert({ at, actor, action, key_id: keyId, account, details: JSON.stringify(details) })
}

/** All lines, or those of one account, oldest first. */
export async function listAuditEntries(knex: Knex, accountName?: string): Promise<AuditEntry[]> {
  const query = knex('audit_log').orderBy('id')
  return (accountName === undefined ? query : query.where({ account: accountName })).select<AuditEntry[]>(
    'at',
    'actor',
    'action',
    'key_id as keyId',
    'account',
    'details',
  )
}
