import type { Knex } from 'knex'
import type { Account } from '../../domain/account.ts'
import type { CutPosition } from '../../domain/pages/cut-page.ts'
import { type CancellableQuery, inTransaction, readPromptly, runCancellable } from '../../postgres/cancellable.ts'
import { type AuditAction, insertAuditEntry } from '../../store/audit-repository.ts'
import type { KeyTerms } from '../rules/key-terms.ts'

/** A key as it is stored: only its hash, never the key. */
export interface StoredApiKey extends KeyTerms {
  /** UUID; public. */
  readonly id: string
  /** 32 bytes. */
  readonly keyHash: Buffer
  readonly account: Account
  /** The first characters of the key. */
  readonly hint: string
  readonly createdAt: Date
  readonly revokedAt?: Date | undefined
  /** Accurate to about a minute. */
  readonly lastUsedAt?: Date | undefined
  /** Id of the key that replaced it. */
  readonly replacedBy?: string | undefined
}

type Row = ReturnType<typeof toRow> & {
  readonly account_name: string
  readonly revoked_at: Date | null
  readonly last_used_at: Date | null
  readonly replaced_by: string | null
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

/** Beside which key a page of a list begins. */
export interface KeyPosition extends CutPosition {
  /** The columns of the order: whether it is in force, when it was created, its id. */
  readonly key: readonly [boolean, string, string]
}

interface KeysPage {
  /** When keys in force are. */
  readonly at: Date
  readonly rows: number
  readonly position?: KeyPosition | undefined
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
    /** The keys that exist, in any order. */
    async findByIds(ids: readonly string[]): Promise<StoredApiKey[]> {
      return (await lookup(() => selectKeys(knex).whereIn('api_keys.id', ids))).map(fromRow)
    },
    findAccount,
    /** The account of that name, created if there is none. */
    ensureAccount,
    /** Changes keys in one transaction. */
    change: <T>(work: (keys: LockedKeys) => Promise<T>, signal?: AbortSignal): Promise<T> =>
      inTransaction(knex, signal, (trx) => work(lockedKeysIn(trx))),
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
    /** The keys of an account: those in force, then those that ended, each newest first. */
    async listNewest(accountId: number, { at, rows, position }: KeysPage, signal?: AbortSignal) {
      const direction = position?.direction === 'backward' ? 'asc' : 'desc'
      const order = `(${IN_FORCE}) ${direction}, api_keys.created_at ${direction}, api_keys.id ${direction}`
      const query = selectKeys(knex).where('account_id', accountId).orderByRaw(order, [at]).limit(rows)
      if (position !== undefined) {
        const comparison = `${direction === 'asc' ? '>' : '<'}${position.inclusive ? '=' : ''}`
        const place = `((${IN_FORCE}), api_keys.created_at, api_keys.id) ${comparison} (?, ?::timestamptz, ?::uuid)`
        void query.whereRaw(place, [at, ...position.key])
      }
      return (await runCancellable(knex, query, signal)).map(fromRow)
    },
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

const IN_FORCE = 'revoked_at is null and (expires_at is null or expires_at > ?)'

export type LockedKeys = ReturnType<typeof lockedKeysIn>

/** What changes keys in a transaction. */
function lockedKeysIn(trx: Knex) {
  return {
    /**
     * Reads the key that makes a change and the one that is changed. Nobody else changes them until the transaction ends; rows are locked in one
     * order, so that no two changes wait for each other.
     *
     * @param target - undefined for no key; `accountId`: the only account whose keys are found
     */
    async lock(
      makerId: string | undefined,
      target: { readonly id: string; readonly accountId?: number | undefined } | undefined,
    ) {
      const { id, accountId } = target ?? {}
      const rows = await selectKeys(trx)
        .whereRaw('api_keys.id = ?', [makerId ?? null])
        .orWhereRaw('(api_keys.id = ? and account_id = coalesce(?, account_id))', [id ?? null, accountId ?? null])
        .orderBy('api_keys.id')
        .forNoKeyUpdate('api_keys')
      const locked = rows.map(fromRow)
      return {
        maker: locked.find((key) => key.id === makerId),
        target: locked.find((key) => key.id === id && (accountId ?? key.account.id) === key.account.id),
      }
    },
    async countInForce(accountId: number, at: Date): Promise<number> {
      const [row] = await trx('api_keys')
        .where('account_id', accountId)
        .whereRaw(IN_FORCE, [at])
        .count<{ count: bigint }[]>()
      return Number(row?.count ?? 0)
    },
    async insert(key: StoredApiKey, change: Change): Promise<void> {
      await trx('api_keys').insert(toRow(key))
      await audit(trx, 'CREATE_KEY', key, change, termsOf(key))
    },
    /** Stores a key that replaces another, which ends at `oldExpiresAt` or earlier, as it was to. */
    async replace(old: StoredApiKey, key: StoredApiKey, oldExpiresAt: Date, change: Change): Promise<void> {
      const expires_at = trx.raw('least(expires_at, ?)', [oldExpiresAt])
      await trx('api_keys').where({ id: old.id }).update({ expires_at, replaced_by: key.id })
      await trx('api_keys').insert(toRow(key))
      const details = { replacedBy: key.id, oldExpiresAt: oldExpiresAt.toISOString() }
      await audit(trx, 'ROTATE_KEY', old, change, details)
      await audit(trx, 'CREATE_KEY', key, change, { ...termsOf(key), replaces: old.id })
    },
    async revoke(key: StoredApiKey, change: Change): Promise<void> {
      await trx('api_keys').where({ id: key.id }).update({ revoked_at: change.at })
      await audit(trx, 'REVOKE_KEY', key, change, {})
    },
  }
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

function termsOf({ scopes, callsPerMinute, share, origins, shop, note, expiresAt }: StoredApiKey) {
  return { scopes, callsPerMinute, share, origins, shop: shop?.name, note, expiresAt: expiresAt?.toISOString() }
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
    note: key.note ?? null,
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
    note: row.note ?? undefined,
    createdAt: row.created_at,
    expiresAt: row.expires_at ?? undefined,
    revokedAt: row.revoked_at ?? undefined,
    lastUsedAt: row.last_used_at ?? undefined,
    replacedBy: row.replaced_by ?? undefined,
  }
}
