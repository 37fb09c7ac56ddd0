import type { Knex } from 'knex'
import { parseUuid } from '../domain/identifiers.ts'
import type { CutPosition } from '../domain/pages/cut-page.ts'
import { runCancellable } from '../postgres/cancellable.ts'

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

/** An entry with its number, in decimal digits, which grows and counts the entries of all accounts. */
export type ListedAuditEntry = AuditEntry & { readonly id: string }

/** Adds an entry, in the transaction of the change. Entries are never changed or deleted. */
export async function insertAuditEntry(knex: Knex, entry: AuditEntry): Promise<void> {
  const { at, actor, action, keyId = null, account, details } = entry
  await knex('audit_log').insert({ at, actor, action, key_id: keyId, account, details: JSON.stringify(details) })
}

/** Which entries are listed; absent is any. */
interface AuditQuery {
  readonly account?: string | undefined
  /** Of the key that was changed, or made the call. */
  readonly keyId?: string | undefined
  readonly actions?: readonly string[]
  /** How many of the newest, newest first, or from a position on; by default all, oldest first. */
  readonly rows?: number
  /** In the list of an account. */
  readonly position?: AuditPosition | undefined
}

/** Beside which entry a page begins. */
export type AuditPosition = CutPosition & Pick<ListedAuditEntry, 'id'>

/** Lists entries. */
export async function listAuditEntries(knex: Knex, query: AuditQuery = {}, signal?: AbortSignal) {
  const { account, keyId, actions, rows, position } = query
  const order = rows === undefined || position?.direction === 'backward' ? 'asc' : 'desc'
  const keys = account === undefined ? ['id'] : ['account', 'id']
  const reading = knex('audit_log').orderBy(keys.map((column) => ({ column, order })))
  // PostgreSQL would take an equal account out of the order, and might then read by id, past all entries of others.
  if (account !== undefined) void reading.whereBetween('account', [account, account])
  if (keyId !== undefined) void reading.where({ key_id: keyId })
  if (actions !== undefined) void reading.whereIn('action', actions)
  if (rows !== undefined) void reading.limit(rows)
  const comparison = `${order === 'asc' ? '>' : '<'}${position?.inclusive ? '=' : ''}`
  if (position !== undefined) void reading.whereRaw(`(account, id) ${comparison} (?, ?)`, [account ?? '', position.id])
  const columns = ['id', 'at', 'actor', 'action', 'key_id', 'account', 'details']
  const selected = reading.select<(Omit<AuditEntry, 'keyId'> & { id: bigint; key_id: string | null })[]>(columns)
  return (await runCancellable(knex, selected, signal)).map(
    ({ id, key_id, ...entry }): ListedAuditEntry => ({ ...entry, id: String(id), keyId: key_id ?? undefined }),
  )
}

/** Who makes a change: `user@host` of a command, or the key of a call. */
export type Changer = { readonly actor: string } | { readonly keyId: string | undefined }

/** The demo's key has no UUID, because it is not stored. */
export function actorOf(by: Changer): Pick<AuditEntry, 'actor' | 'keyId'> {
  if ('actor' in by) return { actor: by.actor }
  return by.keyId === undefined ? { actor: 'service' } : { actor: `key ${by.keyId}`, keyId: parseUuid(by.keyId) }
}
