import type { Knex } from 'knex'

/** What was done to a key. */
export const keyActions = ['CREATE_KEY', 'ROTATE_KEY', 'REVOKE_KEY'] as const

/** What was done to a refund wallet of an account, or to an unmatched event. */
export type AuditAction =
  | (typeof keyActions)[number]
  | 'ADD_WALLET'
  | 'REMOVE_WALLET'
  | 'ACCEPT_EVENT'
  | 'UNACCEPT_EVENT'

/** One change. */
export interface AuditEntry {
  readonly at: Date
  /** Who did it: `user@host` of the command, `key ID` of a call, or `service`. */
  readonly actor: string
  readonly action: AuditAction
  /** UUID of the key that was changed, or with which the call was made; none where a command did it, or the demo's key. */
  readonly keyId?: string | undefined
  /** Name of the account that it belongs to. */
  readonly account: string
  /** What a change says of itself, such as scopes and rate; never the key. */
  readonly details: Readonly<Record<string, unknown>>
}

/** Adds a line, in the transaction of the change that it tells of. Lines are never changed or deleted. */
export async function insertAuditEntry(knex: Knex, entry: AuditEntry): Promise<void> {
  const { at, actor, action, keyId = null, account, details } = entry
  await knex('audit_log').insert({ at, actor, action, key_id: keyId, account, details: JSON.stringify(details) })
}

/** Lines of all accounts and actions unless told, oldest first. */
export async function listAuditEntries(
  knex: Knex,
  { account, actions }: { readonly account?: string | undefined; readonly actions?: readonly AuditAction[] } = {},
): Promise<AuditEntry[]> {
  const query = knex('audit_log').orderBy('id')
  if (account !== undefined) void query.where({ account })
  if (actions !== undefined) void query.whereIn('action', [...actions])
  const rows = await query.select<(Omit<AuditEntry, 'keyId'> & { key_id: string | null })[]>(
    'at',
    'actor',
    'action',
    'key_id',
    'account',
    'details',
  )
  return rows.map(({ key_id, ...entry }) => ({ ...entry, ...(key_id !== null && { keyId: key_id }) }))
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/** Who made a call with a key. The key of the demo has no UUID, since it is stored nowhere. */
export function actorOfKey(keyId: string | undefined): Pick<AuditEntry, 'actor' | 'keyId'> {
  if (keyId === undefined) return { actor: 'service' }
  return { actor: `key ${keyId}`, ...(UUID.test(keyId) && { keyId }) }
}
