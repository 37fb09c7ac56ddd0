import type { Knex } from 'knex'

/** Actions that are logged: on API keys, on refund wallets, on requests, on unmatched events, on what was found on a chain, and on webhooks. */
export type AuditAction =
  | 'CREATE_KEY'
  | 'ROTATE_KEY'
  | 'REVOKE_KEY'
  | 'ADD_WALLET'
  | 'REMOVE_WALLET'
  | 'UPDATE_REQUEST'
  | 'ACCEPT_EVENT'
  | 'UNACCEPT_EVENT'
  | 'VERIFY_REPAIR'
  | 'CREATE_WEBHOOK'
  | 'UPDATE_WEBHOOK'
  | 'REMOVE_WEBHOOK'
  | 'ROTATE_WEBHOOK_SECRET'
  | 'REPLAY_WEBHOOK'

/** One change, as it is logged. */
export interface AuditEntry {
  readonly at: Date
  /** Who did it: `user@host` of the command, `key ID` of a call, or `service`. */
  readonly actor: string
  readonly action: AuditAction
  /** UUID of the key that was changed or that made the call. Absent for commands and for the demo's key. */
  readonly keyId?: string | undefined
  /** Name of the account that was changed. */
  readonly account: string
  /** Details of the change, such as scopes and rate; never the key. */
  readonly details: Readonly<Record<string, unknown>>
}

/** Adds an entry, in the transaction of the change. Entries are never changed or deleted. */
export async function insertAuditEntry(knex: Knex, entry: AuditEntry): Promise<void> {
  const { at, actor, action, keyId = null, account, details } = entry
  await knex('audit_log').insert({ at, actor, action, key_id: keyId, account, details: JSON.stringify(details) })
}

/** Lists entries, oldest first; of all accounts by default. */
export async function listAuditEntries(knex: Knex, { account }: { readonly account?: string | undefined } = {}) {
  const query = knex('audit_log').orderBy('id')
  if (account !== undefined) void query.where({ account })
  const columns = ['at', 'actor', 'action', 'key_id', 'account', 'details']
  const rows = await query.select<(Omit<AuditEntry, 'keyId'> & { key_id: string | null })[]>(columns)
  return rows.map(({ key_id, ...entry }): AuditEntry => ({ ...entry, keyId: key_id ?? undefined }))
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/** The actor of a call. The demo's key has no UUID, because it is not stored. */
export function actorOfKey(keyId: string | undefined): Pick<AuditEntry, 'actor' | 'keyId'> {
  if (keyId === undefined) return { actor: 'service' }
  return { actor: `key ${keyId}`, keyId: UUID.test(keyId) ? keyId : undefined }
}
