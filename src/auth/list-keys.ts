import type { Knex } from 'knex'
import type { Account } from '../domain/account.ts'
import { parseUuid } from '../domain/identifiers.ts'
import { waybillError } from '../errors/waybill-error.ts'
import { type AuditEntry, listAuditEntries } from '../store/audit-repository.ts'
import type { ApiKeyRepository } from './sql/api-key-repository.ts'

/** The most entries of a list. */
const MAX_LISTED = 1_000

/** Lists an account's keys: those in force, then those that ended, each newest first. */
export async function listKeys(repository: ApiKeyRepository, account: Account, now: Date, signal?: AbortSignal) {
  const { listed, ...page } = cut(await repository.listNewest(account.id, { now, rows: MAX_LISTED + 1 }, signal))
  return { keys: listed, ...page }
}

/** Lists the changes of an account's keys, newest first. @param id - of the only key that is meant @throws WaybillError KEY_NOT_FOUND for what is no id */
export async function listKeyChanges(knex: Knex, account: Account, id: string | undefined, signal?: AbortSignal) {
  const keyId = id === undefined ? undefined : parseUuid(id)
  if (id !== undefined && keyId === undefined) throw waybillError('KEY_NOT_FOUND', { value: id })
  const query = { account: account.name, keyId, actions: Object.keys(ACTIONS), newest: MAX_LISTED + 1 }
  const { listed, ...page } = cut(await listAuditEntries(knex, query, signal))
  return { changes: listed.map(changeOf), ...page }
}

function cut<T>(found: readonly T[]) {
  return { listed: found.slice(0, MAX_LISTED), limit: MAX_LISTED, hasMore: found.length > MAX_LISTED }
}

const ACTIONS = { CREATE_KEY: 'CREATED', ROTATE_KEY: 'ROTATED', REVOKE_KEY: 'REVOKED' } as const

export type KeyChange = ReturnType<typeof changeOf>

/** What was done by a command names no person and no machine of the operator. */
function changeOf({ at, actor, action, keyId = '', details }: AuditEntry) {
  const { scopes, replacedBy, replaces } = details as { scopes?: string[]; replacedBy?: string; replaces?: string }
  const madeBy = /^key (.*)$/.exec(actor)?.[1]
  return { at, action: ACTIONS[action as keyof typeof ACTIONS], keyId, madeBy, scopes, replacedBy, replaces }
}
