import type { Knex } from 'knex'
import type { Account } from '../../domain/account.ts'
import { type CancellableQuery, readPromptly, runCancellable } from '../../postgres/cancellable.ts'
import { type AuditAction, insertAuditEntry } from '../../store/audit-repository.ts'
import type { Scope } from '../rules/api-key.ts'
import type { Shop } from '../rules/shop.ts'

/** A key as it is stored: only its hash, never the key. */
export interface StoredApiKey {
  /** UUID; public. */
  readonly id: string
  /** 32 bytes. */
  readonly keyHash: Buffer
  readonly account: Account
  /** The first characters of the key. */
  readonly hint: string
  readonly scopes: readonly Scope[]
  /** Calls a minute; 0 for no limit. */
  readonly callsPerMinute: number
  /** The part of a process's running calls that nobody takes from the key, above 0 and at most 1; undefined for the usual one. */
  readonly share?: number | undefined
  /** The origins whose pages may use it; undefined for a secret key. A key with origins is publishable. */
  readonly origins?: readonly string[] | undefined
  /** Of a publishable key. */
  readonly shop?: Shop | undefined
  readonly createdAt: Date
  readonly expiresAt?: Date | undefined
  readonly revokedAt?: Date | undefined
  /** Accurate to about a minute. */
  readonly lastUsedAt?: Date | undefined
}

type Row = ReturnType<typeof toRow> & {
  readonly account_name: string
  readonly revoked_at: Date | null
  readonly last_used_at: Date | null
}

/** The actor in the audit log when no person changes a key. */
export const SERVICE = 'service'

/** Who changes a key and when, for the audit log. */
export interface Change {
  readonly actor: string
  readonly at: Date
}

export interface RevokeOthers {
  readonly keptIds: readonly string[]
  readonly accountName?: string | undefined
  readonly change: Change
}

/** How long a call waits for what identifies its caller, in milliseconds. */
const LOOKUP_TIMEOUT_MS = 10_000

export type ApiKeyRepository = ReturnType<typeof createApiKeyRepository>

/** API keys and their accounts. Every change writes its line of the audit log in the same transaction. */
export function createApiKeyRepository(knex: Knex) {
  /** All calls wait for these reads, so none of them waits for one connection. */
  function lookup<T>(query: () => CancellableQuery<T>): Promise<T> {
    return readPromptly((signal) => runCancellable(knex, query(), signal), LOOKUP_TIMEOUT_MS)
  }

  function findAccount(name: string): Promise<Account | undefined> {
    return lookup(() => knex('accounts').where({ name }).first<Account | undefined>('id', 'name'))
  }

  async function ensureAccount(name: string): Promise<Account> {
    const found = await findAccount(name)
    if (found !== undefined) return found
    await knex('accounts').insert({ name }).onConflict('name').ignore()
    const made = await findAccount(name)
    if (made === undefined) throw new Error(`the account ${name} was created and is gone`)
    return made
  }

  return {
    async findByHashes(keyHashes: readonly Buffer[]): Promise<StoredApiKey[]> {
      return (await lookup(() => selectKeys(knex).whereIn('key_hash', keyHashes))).map(fromRow)
    },
    async findById(id: string): Promise<StoredApiKey | undefined> {
      const [row] = await selectKeys(knex).where('api_keys.id', id)
      return row === undefined ? undefined : fromRow(row)
    },
    /** The keys that exist, in any order. */
    async findByIds(ids: readonly string[]): Promise<StoredApiKey[]> {
      return (await lookup(() => selectKeys(knex).whereIn('api_keys.id', ids))).map(fromRow)
    },
    findAccount,
    /** The account of that name, created if there is none. */
    ensureAccount,
    insert: (key: StoredApiKey, change: Change) => knex.transaction((trx) => insertKey(trx, key, change)),
    /**
     * Stores a key that replaces another, which expires at `oldExpiresAt` or earlier, as it was to.
     *
     * @returns false when the old key is revoked or expired; then nothing is changed
     */
    replace: (replacement: Replacement) => knex.transaction((trx) => replaceKey(trx, replacement)),
    /** The origins of all publishable keys in force, or of those of one account, in no order. */
    async listOrigins(now: Date, accountId?: number): Promise<string[]> {
      const { rows } = await lookup(() =>
        knex.raw<{ rows: { origin: string }[] }>(
          `select distinct unnest(origins) as origin from api_keys
           where origins is not null and revoked_at is null and (expires_at is null or expires_at > ?)
           and (cast(? as integer) is null or account_id = ?)`,
          [now, accountId ?? null, accountId ?? null],
        ),
      )
      return rows.map(({ origin }) => origin)
    },
    /** All keys or those of one account, oldest first. */
    async list(accountName?: string): Promise<StoredApiKey[]> {
      const query = selectKeys(knex).orderBy(['api_keys.created_at', 'api_keys.id'])
      const rows = await (accountName === undefined ? query : query.where('accounts.name', accountName))
      return rows.map(fromRow)
    },
    /** @returns false when there is no such key or it is revoked already */
    revoke: (id: string, at: Date, actor = SERVICE) => knex.transaction((trx) => revokeKey(trx, id, { actor, at })),
    /**
     * Revokes every key in force but those named.
     *
     * @param accountName - only keys of this account; all accounts when absent
     * @returns the keys that were revoked, oldest first; or the named ids that are not in force there, and then nothing is changed
     */
    revokeOthers: (terms: RevokeOthers) => knex.transaction((trx) => revokeOtherKeys(trx, terms)),
    /** Sets the time of last use; never overwrites a later time with an earlier one. */
    async recordUse(ids: readonly string[], at: Date): Promise<void> {
      await knex('api_keys')
        .whereIn('id', ids)
        .whereRaw('(last_used_at is null or last_used_at < ?)', [at])
        .update({ last_used_at: at })
    },
  }
}

function selectKeys(knex: Knex) {
  return knex('api_keys')
    .join('accounts', 'accounts.id', 'api_keys.account_id')
    .select<Row[]>('api_keys.*', 'accounts.name as account_name')
}

async function insertKey(trx: Knex, key: StoredApiKey, change: Change): Promise<void> {
  await trx('api_keys').insert(toRow(key))
  await audit(trx, 'CREATE_KEY', key, change, termsOf(key))
}

interface Replacement {
  readonly oldId: string
  readonly key: StoredApiKey
  readonly oldExpiresAt: Date
  readonly change: Change
}

async function replaceKey(trx: Knex, { oldId, key, oldExpiresAt, change }: Replacement): Promise<boolean> {
  const replaced = await trx('api_keys')
    .where({ id: oldId })
    .whereNull('revoked_at')
    .whereRaw('(expires_at is null or expires_at > ?)', [change.at])
    .update({ expires_at: trx.raw('least(expires_at, ?)', [oldExpiresAt]) })
  if (replaced === 0) return false
  await trx('api_keys').insert(toRow(key))
  const details = { replacedBy: key.id, oldExpiresAt: oldExpiresAt.toISOString() }
  await audit(trx, 'ROTATE_KEY', { ...key, id: oldId }, change, details)
  await audit(trx, 'CREATE_KEY', key, change, { ...termsOf(key), replaces: oldId })
  return true
}

async function revokeKey(trx: Knex, id: string, change: Change): Promise<boolean> {
  const [revoked] = await trx('api_keys')
    .where({ id })
    .whereNull('revoked_at')
    .update({ revoked_at: change.at })
    .returning<{ account_id: number }[]>('account_id')
  if (revoked === undefined) return false
  const account = await trx('accounts').where({ id: revoked.account_id }).first<Account>('id', 'name')
  await audit(trx, 'REVOKE_KEY', { id, account }, change, {})
  return true
}

async function revokeOtherKeys(trx: Knex, { keptIds, accountName, change }: RevokeOthers) {
  const inForce = `revoked_at is null and (expires_at is null or expires_at > :at)
    and (cast(:accountName as text) is null or account_id = (select id from accounts where name = :accountName))`
  const bindings = { at: change.at, accountName: accountName ?? null, keptIds: [...keptIds] }
  const kept = await trx.raw<{ rows: { id: string }[] }>(
    `select id from api_keys where id = any(cast(:keptIds as uuid[])) and ${inForce} for update`,
    bindings,
  )
  const missing = keptIds.filter((id) => !kept.rows.some((row) => row.id === id))
  if (missing.length > 0) return { missing }
  const ended = await trx.raw<{ rows: { id: string }[] }>(
    `update api_keys set revoked_at = :at where id <> all(cast(:keptIds as uuid[])) and ${inForce} returning id`,
    bindings,
  )
  const rows = await selectKeys(trx)
    .whereRaw('api_keys.id = any(?::uuid[])', [ended.rows.map(({ id }) => id)])
    .orderBy(['api_keys.created_at', 'api_keys.id'])
  const revoked = rows.map(fromRow)
  for (const key of revoked) await audit(trx, 'REVOKE_KEY', key, change, {})
  return { revoked }
}

function audit(
  knex: Knex,
  action: AuditAction,
  key: Pick<StoredApiKey, 'id' | 'account'>,
  { actor, at }: Change,
  details: Readonly<Record<string, unknown>>,
): Promise<void> {
  return insertAuditEntry(knex, { at, actor, action, keyId: key.id, account: key.account.name, details })
}

function termsOf({ scopes, callsPerMinute, share, origins, shop, expiresAt }: StoredApiKey) {
  return { scopes, callsPerMinute, share, origins, shop: shop?.name, expiresAt: expiresAt?.toISOString() }
}

function toRow(key: StoredApiKey) {
  return {
    key_hash: key.keyHash,
    id: key.id,
    account_id: key.account.id,
    hint: key.hint,
    scopes: [...key.scopes],
    calls_per_minute: key.callsPerMinute,
    share: key.share ?? null,
    origins: key.origins === undefined ? null : [...key.origins],
    shop: key.shop ?? null,
    created_at: key.createdAt,
    expires_at: key.expiresAt ?? null,
  }
}

function fromRow(row: Row): StoredApiKey {
  return {
    id: row.id,
    keyHash: row.key_hash,
    account: { id: row.account_id, name: row.account_name },
    hint: row.hint,
    scopes: row.scopes,
    callsPerMinute: row.calls_per_minute,
    share: row.share ?? undefined,
    origins: row.origins ?? undefined,
    shop: row.shop ?? undefined,
    createdAt: row.created_at,
    expiresAt: row.expires_at ?? undefined,
    revokedAt: row.revoked_at ?? undefined,
    lastUsedAt: row.last_used_at ?? undefined,
  }
}
