import type { Knex } from 'knex'
import type { Account } from '../domain/account.ts'
import { parseUuid } from '../domain/identifiers.ts'
import { cutPage } from '../domain/pages/cut-page.ts'
import { hideNumber, openCursor, readHiddenNumber, sealCursor } from '../domain/pages/sealed-cursor.ts'
import { DEFAULT_PAGE_LIMIT, requirePageLimit } from '../domain/require-input.ts'
import { readAll } from '../errors/gather-errors.ts'
import { waybillError } from '../errors/waybill-error.ts'
import { type AuditEntry, type AuditPosition, listAuditEntries } from '../store/audit-repository.ts'
import { isInForce } from './find-key-in-force.ts'
import type { ApiKeyRepository, KeyPosition, StoredApiKey } from './sql/api-key-repository.ts'

/** Which page of an account's keys, or of their changes. */
export interface KeyPage {
  /** Of changes: of the only key that is meant. */
  readonly id?: string | undefined
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
export function readKeyPage(secret: Uint8Array, account: Account, { limit, cursor }: KeyPage, list = 'keys') {
  const seal = { secret, scope: `${account.id}/${list}`, version: 1 }
  const carried = () => (cursor === undefined ? undefined : openCursor(seal, cursor))
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
  const { seal, sentLimit, ...read } = readKeyPage(cursorSecret, account, page)
  const carried = read.carried as Carried | undefined
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

/** Reads what was sent. @throws WaybillError INVALID_LIMIT, INVALID_CURSOR; KEY_NOT_FOUND for what is no id */
export function readChangesPage(cursorSecret: Uint8Array, account: Account, { id, ...page }: KeyPage) {
  const read = readKeyPage(cursorSecret, account, page, 'key-changes')
  const carried = read.carried as CarriedChanges | undefined
  const keyId = id === undefined ? carried?.keyId : parseUuid(id)
  if (id !== undefined && keyId === undefined) throw waybillError('KEY_NOT_FOUND', { value: id })
  if (carried && carried.keyId !== keyId) throw waybillError('INVALID_CURSOR', { detail: 'it was made for other keys' })
  return { ...read, carried, keyId }
}

type ReadChanges = ReturnType<typeof readChangesPage>

/** Lists the changes of an account's keys, newest first. */
export async function listKeyChanges(knex: Knex, account: Account, read: ReadChanges, signal?: AbortSignal) {
  const { seal, carried, sentLimit, keyId } = read
  const limit = sentLimit ?? carried?.limit ?? DEFAULT_PAGE_LIMIT
  const position = carried && { ...carried.position, id: readHiddenNumber(seal, carried.position.id) }
  const query = { account: account.name, keyId, actions: Object.keys(ACTIONS), rows: limit + 1, position }
  const found = await listAuditEntries(knex, query, signal)
  const placeOf = ({ id }: { id: string }, direction: 'forward' | 'backward') => ({ id, direction, inclusive: false })
  const cursorAt = ({ id, ...beside }: AuditPosition) =>
    sealCursor(seal, { keyId, limit, position: { ...beside, id: hideNumber(seal, id) } } satisfies CarriedChanges)
  const { entries, ...cursors } = cutPage(found, { limit, position }, placeOf, cursorAt)
  return { changes: entries.map(changeOf), limit, hasMore: cursors.nextCursor !== undefined, ...cursors }
}

/** The contents of a cursor of changes. The number of its entry is hidden. */
interface CarriedChanges {
  readonly keyId: string | undefined
  readonly limit: number
  readonly position: AuditPosition
}

const ACTIONS = { CREATE_KEY: 'CREATED', ROTATE_KEY: 'ROTATED', REVOKE_KEY: 'REVOKED' } as const

export type KeyChange = ReturnType<typeof changeOf>

/** What was done by a command names no person and no machine of the operator. */
function changeOf({ at, actor, action, keyId = '', details }: AuditEntry) {
  const { scopes, replacedBy, replaces } = details as { scopes?: string[]; replacedBy?: string; replaces?: string }
  const madeBy = /^key (.*)$/.exec(actor)?.[1]
  return { at, action: ACTIONS[action as keyof typeof ACTIONS], keyId, madeBy, scopes, replacedBy, replaces }
}
