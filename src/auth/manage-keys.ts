import { randomUUID } from 'node:crypto'
import type { Account } from '../domain/account.ts'
import { parseUuid } from '../domain/identifiers.ts'
import { waybillError } from '../errors/waybill-error.ts'
import { actorOf, type Changer } from '../store/audit-repository.ts'
import { isInForce } from './find-key-in-force.ts'
import { createApiKey, createPublishableKey, hashApiKey, hintOfApiKey } from './rules/api-key.ts'
import {
  DEFAULT_CALLS_PER_MINUTE,
  explainBeyondLimits,
  explainBeyondScopes,
  type KeyInput,
  type KeyTerms,
  parseKeyTerms,
  requireOverlap,
} from './rules/key-terms.ts'
import { type ApiKeyRepository, type LockedKeys, SERVICE, type StoredApiKey } from './sql/api-key-repository.ts'

/** A new key. */
export interface IssuedApiKey {
  /** The key itself; it cannot be shown again. */
  readonly key: string
  readonly stored: StoredApiKey
}

export interface KeysOptions {
  readonly repository: ApiKeyRepository
  readonly now: () => Date
  /** Keys that are never stored and always in force; default none. */
  readonly processKeys?: readonly StoredApiKey[]
}

export type Keys = ReturnType<typeof createKeys>

/** The most keys in force of an account that keys of it may make. */
const MAX_KEYS = 100

const DAY_MS = 86_400_000

/** Creates what creates, rotates and revokes keys. A command may hand out any rights, the key of a call no more than it holds. */
export function createKeys({ repository, now, processKeys = [] }: KeysOptions) {
  /**
   * Locks the key that is to be changed and the one that changes it, so that a key that has ended changes none.
   *
   * @returns `own` is undefined for a command
   */
  async function lock(keys: LockedKeys, by: Changer, at: Date, named?: NamedKey) {
    const makerId = 'keyId' in by ? by.keyId : undefined
    const id = named && parseUuid(named.id)
    const { maker, target } = await keys.lock(
      makerId && parseUuid(makerId),
      id === undefined ? undefined : { id, accountId: named?.account?.id },
    )
    const own = processKeys.find((key) => key.id === makerId) ?? maker
    if (makerId !== undefined && (own === undefined || !isInForce(own, at))) throw waybillError('INVALID_API_KEY', {})
    return { own, target }
  }

  async function admitNew(keys: LockedKeys, wanted: StoredApiKey, own: StoredApiKey | undefined, replacedId?: string) {
    if (own === undefined) return
    refuseBeyond(explainBeyondScopes(wanted, own, wanted.account.id === own.account.id))
    refuseBeyond(explainBeyondLimits(wanted, own, replacedId === own.id))
    const count = await keys.countInForce(wanted.account.id, wanted.createdAt)
    if (count >= MAX_KEYS) throw waybillError('TOO_MANY_KEYS', { limit: MAX_KEYS })
  }

  return {
    /** Reads what was sent, and does nothing else. @throws WaybillError of kind INVALID_INPUT */
    check: (input: KeyInput) => void parseKeyTerms(input, now()),
    /**
     * Creates a key, and the account of that name if there is none.
     *
     * @throws WaybillError of wrong terms; INVALID_API_KEY, KEY_EXCEEDS_OWN, TOO_MANY_KEYS
     */
    async create(account: string, input: KeyInput, by: Changer, signal?: AbortSignal): Promise<IssuedApiKey> {
      const at = now()
      const terms = { ...parseKeyTerms(input, at), account, now: at, actor: actorOf(by).actor }
      const admit = async (keys: LockedKeys, wanted: StoredApiKey) =>
        admitNew(keys, wanted, (await lock(keys, by, at)).own)
      return issueApiKey(repository, terms, admit, signal)
    },
    /**
     * Creates a key with the account, rights and lifetime of another, which ends after the overlap, a day by default; until then both are valid.
     *
     * @throws WaybillError INVALID_FIELD, KEY_NOT_FOUND, KEY_NOT_IN_FORCE, INVALID_API_KEY, KEY_EXCEEDS_OWN, TOO_MANY_KEYS
     */
    async rotate(named: NamedKey, overlapMs = DAY_MS, by: Changer, signal?: AbortSignal) {
      const at = now()
      requireOverlap(overlapMs)
      return repository.change(async (keys) => {
        const { own, target } = await lock(keys, by, at, named)
        const old = requireFound(target, named.id)
        const issued = succeed(old, at)
        await admitNew(keys, issued.stored, own, old.id)
        const oldExpiresAt = new Date(at.getTime() + overlapMs)
        await keys.replace(old, issued.stored, oldExpiresAt, { actor: actorOf(by).actor, at })
        return issued
      }, signal)
    },
    /** Ends a key; one that is revoked stays as it is. @throws WaybillError KEY_NOT_FOUND, INVALID_API_KEY, KEY_EXCEEDS_OWN */
    async revoke(named: NamedKey, by: Changer, signal?: AbortSignal) {
      const at = now()
      return repository.change(async (keys) => {
        const { own, target } = await lock(keys, by, at, named)
        const key = requireFound(target, named.id)
        if (own !== undefined) refuseBeyond(explainBeyondScopes(key, own, key.account.id === own.account.id))
        if (key.revokedAt !== undefined) return { key, isNew: false }
        await keys.revoke(key, { actor: actorOf(by).actor, at })
        return { key: { ...key, revokedAt: at }, isNew: true }
      }, signal)
    },
  }
}

/** The id of a key, and the account that it has to belong to; any without one. */
export interface NamedKey {
  readonly id: string
  readonly account?: Account | undefined
}

function requireFound(found: StoredApiKey | undefined, value: string): StoredApiKey {
  if (found === undefined) throw waybillError('KEY_NOT_FOUND', { value })
  return found
}

function refuseBeyond(detail: string | undefined): void {
  if (detail !== undefined) throw waybillError('KEY_EXCEEDS_OWN', { detail })
}

/** Whose key is created, and with which terms, which were checked. */
type NewKey = Omit<KeyTerms, 'callsPerMinute'> & {
  /** {@link DEFAULT_CALLS_PER_MINUTE} when absent. */
  readonly callsPerMinute?: number
  /** A name that {@link isAccountName} allows. The account is created if there is none. */
  readonly account: string
  readonly now: Date
  /** For the audit log. */
  readonly actor?: string
}

/** Creates a key. @param admit - refuses the key by throwing, in the transaction that stores it */
export async function issueApiKey(
  repository: ApiKeyRepository,
  { account: name, now, actor = SERVICE, callsPerMinute = DEFAULT_CALLS_PER_MINUTE, ...terms }: NewKey,
  admit?: (keys: LockedKeys, key: StoredApiKey) => Promise<void>,
  signal?: AbortSignal,
): Promise<IssuedApiKey> {
  const account = await repository.ensureAccount(name)
  const issued = drawKey({ ...terms, callsPerMinute, account, createdAt: now })
  await repository.change(async (keys) => {
    await admit?.(keys, issued.stored)
    await keys.insert(issued.stored, { actor, at: now })
  }, signal)
  return issued
}

/** Draws the key that replaces another. */
function succeed(old: StoredApiKey, at: Date): IssuedApiKey {
  const { id, revokedAt, expiresAt, replacedBy, createdAt } = old
  const refuse = (detail: string) => waybillError('KEY_NOT_IN_FORCE', { value: id, detail })
  if (revokedAt !== undefined) throw refuse(`it was revoked at ${revokedAt.toISOString()}`)
  if (!isInForce(old, at)) throw refuse(`it ended at ${expiresAt?.toISOString()}`)
  if (replacedBy !== undefined) throw refuse(`${replacedBy} has replaced it`)
  const lifetimeMs = expiresAt && expiresAt.getTime() - createdAt.getTime()
  const { account, scopes, callsPerMinute, share, origins, shop, note } = old
  const terms = { account, scopes, callsPerMinute, share, origins, shop, note }
  return drawKey({
    ...terms,
    createdAt: at,
    expiresAt: lifetimeMs === undefined ? undefined : new Date(at.getTime() + lifetimeMs),
  })
}

function drawKey(terms: Omit<StoredApiKey, 'id' | 'keyHash' | 'hint'>): IssuedApiKey {
  const key = terms.origins === undefined ? createApiKey() : createPublishableKey()
  return { key, stored: { ...terms, id: randomUUID(), keyHash: hashApiKey(key), hint: hintOfApiKey(key) } }
}
