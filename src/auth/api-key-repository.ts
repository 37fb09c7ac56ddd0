import type { Knex } from 'knex'
import type { Account } from '../domain/account.ts'
import type { Scope } from './api-key.ts'

/** A key as it is stored: its hash alone, never the key. */
export interface StoredApiKey {
  /** UUID by which people name the key. */
  readonly id: string
  /** 32 bytes. */
  readonly keyHash: Buffer
  readonly account: Account
  /** The first characters of the key. */
  readonly hint: string
  readonly scopes: readonly Scope[]
  readonly createdAt: Date
  readonly expiresAt?: Date
  readonly revokedAt?: Date
}

interface Row {
  id: string
  key_hash: Buffer
  account_id: number
  account_name: string
  hint: string
  scopes: Scope[]
  created_at: Date
  expires_at: Date | null
  revoked_at: Date | null
}

/** Keys and the accounts that they belong to. */
export interface ApiKeyRepository {
  /** Finds a key by the hash of what a caller sent. */
  findByHash(keyHash: Buffer): Promise<StoredApiKey | undefined>
  findAccount(name: string): Promise<Account | undefined>
  /** The account of that name, made if there is none yet. */
  ensureAccount(name: string): Promise<Account>
  insert(key: StoredApiKey): Promise<void>
  /** All keys, or those of one account, oldest first. */
  list(accountName?: string): Promise<StoredApiKey[]>
  /** Revokes a key by id. Returns false when there is none that is not revoked yet. */
  revoke(id: string, at: Date): Promise<boolean>
}

/** Makes the repository on a database. */
export function createApiKeyRepository(knex: Knex): ApiKeyRepository {
  const keys = () =>
    knex('api_keys')
      .join('accounts', 'accounts.id', 'api_keys.account_id')
      .select<Row[]>(
        'api_keys.id',
        'key_hash',
        'account_id',
        'accounts.name as account_name',
        'hint',
        'scopes',
        'api_keys.created_at',
        'expires_at',
        'revoked_at',
      )

  async function findAccount(name: string): Promise<Account | undefined> {
    return knex('accounts').where({ name }).first<Account | undefined>('id', 'name')
  }

  async function ensureAccount(name: string): Promise<Account> {
    const found = await findAccount(name)
    if (found !== undefined) return found
    await knex('accounts').insert({ name }).onConflict('name').ignore()
    const made = await findAccount(name)
    if (made === undefined) throw new Error(`the account ${name} was made and is gone`)
    return made
  }

  return {
    async findByHash(keyHash) {
      const [row] = await keys().where({ key_hash: keyHash })
      return row === undefined ? undefined : fromRow(row)
    },
    findAccount,
    ensureAccount,
    async insert(key) {
      await knex('api_keys').insert({
        key_hash: key.keyHash,
        id: key.id,
        account_id: key.account.id,
        hint: key.hint,
        scopes: [...key.scopes],
        created_at: key.createdAt,
        expires_at: key.expiresAt ?? null,
      })
    },
    async list(accountName) {
      const query = keys().orderBy(['api_keys.created_at', 'api_keys.id'])
      const rows = await (accountName === undefined ? query : query.where('accounts.name', accountName))
      return rows.map(fromRow)
    },
    async revoke(id, at) {
      const revoked = await knex('api_keys').where({ id }).whereNull('revoked_at').update({ revoked_at: at })
      return revoked > 0
    },
  }
}

function fromRow(row: Row): StoredApiKey {
  return {
    id: row.id,
    keyHash: row.key_hash,
    account: { id: row.account_id, name: row.account_name },
    hint: row.hint,
    scopes: row.scopes,
    createdAt: row.created_at,
    ...(row.expires_at !== null && { expiresAt: row.expires_at }),
    ...(row.revoked_at !== null && { revokedAt: row.revoked_at }),
  }
}
