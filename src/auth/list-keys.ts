import type { Knex } from 'knex'
import type { Account } from '../domain/account.ts'
import { parseUuid } from '../domain/identifiers.ts'
import { cutPage } from '../domain/pages/cut-page.ts'
import { openCursor, sealCursor } from '../domain/pages/sealed-cursor.ts'
import { DEFAULT_PAGE_LIMIT, requirePageLimit } from '../domain/require-input.ts'
import { readAll } from '../errors/gather-errors.ts'
import { waybillError } from '../errors/waybill-error.ts'
import { type AuditEntry, listAuditEntries } from '../store/audit-repository.ts'
import { isInForce } from './find-key-in-force.ts'
import type { ApiKeyRepository, KeyPosition, StoredApiKey } from './sql/api-key-repository.ts'

/** The most changes of a list. */
const MAX_LISTED = 1_000

/** Which page of an account's keys. */
export interface KeyPage {
  readonly limit?: number | undefined
  readonly cursor?: string | undefined
}

/** What lists of keys are made of. */
interface ListOptions {
  readonly repository: Pick<ApiKeyRepository, 'listNewest'>
  /** 32 bytes, the same for all processes on one database. */
  readonly cursorSecret: Uint8Array
}

/** Reads what was sent, as {@link listKeys} does. @throws WaybillError INVALID_LIMIT, INVALID_CURSOR */
export function readKeyPage(cursorSecret: Uint8Array, account: Account, { limit, cursor }: KeyPage) {
  const seal = { secret: cursorSecret, scope: `${account.id}/keys`, version: 1 }
  const carried = () => (cursor === undefined ? undefined : (openCursor(seal, cursor) as Carried))
  return { seal, ...readAll({ carried, sentLimit: () => requirePageLimit(limit) }) }
}

/**
 * Lists an account's keys: those in force when the first page was read, then those that had ended, each newest first.
 *
 * @throws WaybillError INVALID_LIMIT, INVALID_CURSOR
 */
export async function listKeys(
  { repository, cursorSecret }: ListOptions,
  account: Account,
  page: KeyPage,
  now: Date,
  signal?: AbortSignal,
) {
  const { seal, carried, sentLimit } = readKeyPage(cursorSecret, account, page)
  const { atMs, position } = carried ?? { atMs: now.getTime() }
  const limit = sentLimit ?? carried?.limit ?? DEFAULT_PAGE_LIMIT
  const at = new Date(atMs)
  const found = await repository.listNewest(account.id, { at, rows: limit + 1, position }, signal)
  const positionOf = (key: StoredApiKey, direction: KeyPosition['direction']): KeyPosition => {
    const { id, createdAt } = key
    return { key: [isInForce(key, at), createdAt.toISOString(), id], direction, inclusive: false }
  }
  const cursorAt = (beside: KeyPosition) => sealCursor(seal, { atMs, limit, position: beside } satisfies Carried)
  const { entries, ...cursors } = cutPage(found, { limit, position }, positionOf, cursorAt)
  return { keys: entries, limit, hasMore: cursors.nextCursor !== undefined, ...cursors }
}

/** The contents of a cursor. */
interface Carried {
  /** When the first page was read. */
  readonly atMs: number
  readonly limit: number
  readonly position: KeyPosition
}

/** Lists the changes of an account's keys, newest first. @param id - of the only key that is meant @throws WaybillError KEY_NOT_FOUND for what is no id */
export async function listKeyChanges(knex: Knex, account: Account, id: string | undefined, signal?: AbortSignal) {
  const keyId = id === undefined ? undefined : parseUuid(id)
  if (id !== undefined && keyId === undefined) throw waybillError('KEY_NOT_FOUND', { value: id })
  const query = { account: account.name, keyId, actions: Object.keys(ACTIONS), newest: MAX_LISTED + 1 }
  const found = await listAuditEntries(knex, query, signal)
  const changes = found.slice(0, MAX_LISTED).map(changeOf)
  return { changes, limit: MAX_LISTED, hasMore: found.length > MAX_LISTED }
}

const ACTIONS = { CREATE_KEY: 'CREATED', ROTATE_KEY: 'ROTATED', REVOKE_KEY: 'REVOKED' } as const

export type KeyChange = ReturnType<typeof changeOf>

/** What was done by a command names no person and no machine of the operator. */
function changeOf({ at, actor, action, keyId = '', details }: AuditEntry) {
  const { scopes, replacedBy, replaces } = details as { scopes?: string[]; replacedBy?: string; replaces?: string }
  const madeBy = /^key (.*)$/.exec(actor)?.[1]
  return { at, action: ACTIONS[action as keyof typeof ACTIONS], keyId, madeBy, scopes, replacedBy, replaces }
}
