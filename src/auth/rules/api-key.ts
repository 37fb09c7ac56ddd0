import { hash, randomBytes } from 'node:crypto'

/**
 * API keys: `wb_` and 40 base62 characters, which are 238 bits; shown once, stored as a hash. Publishable keys, which stand in web pages and are no
 * secret, begin with `wbp_`.
 */

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const RANDOM_CHARACTERS = 40
const KEY_PATTERN = /^wbp?_[0-9A-Za-z]{40}$/

/**
 * What a key may do. `accounts:any` makes it a platform key, which names the account on each call. `operations:read` without it makes it an
 * operator's key, which sees the unmatched events of all accounts.
 */
export const scopes = [
  'routes:read',
  'payments:read',
  'requests:read',
  'requests:write',
  'webhooks:write',
  'keys:write',
  'chains:read',
  'operations:read',
  'accounts:any',
] as const
export type Scope = (typeof scopes)[number]

/** Whether a key with these scopes is an operator's, which acts for no account. */
export function isOperators(held: readonly Scope[]): boolean {
  return held.includes('operations:read') && !held.includes('accounts:any')
}

/**
 * Explains why no key may hold these scopes together. An operator's key sees what belongs to other accounts, so it does nothing for an account:
 * software of an account that got hold of it could not use it by mistake.
 *
 * @returns undefined when one may
 */
export function explainScopes(held: readonly Scope[]): string | undefined {
  if (!isOperators(held)) return undefined
  const others = held.filter((scope) => scope !== 'operations:read' && scope !== 'chains:read')
  if (others.length === 0) return undefined
  return `operations:read goes with chains:read or accounts:any, not with ${others.join(', ')}: it shows events of all accounts`
}

export function isScope(text: string): text is Scope {
  return (scopes as readonly string[]).includes(text)
}

/** Whether a text has the form of a key. */
export function isApiKey(text: string): boolean {
  return KEY_PATTERN.test(text)
}

export function createApiKey(): string {
  return drawSecret('wb_')
}

/** The scopes of every publishable key. Of their methods it may call those for pages. */
export const PUBLISHABLE_SCOPES = ['routes:read', 'requests:read'] as const satisfies readonly Scope[]

export function createPublishableKey(): string {
  return drawSecret('wbp_')
}

/** Appends 40 random base62 characters to a prefix. */
export function drawSecret(prefix: string): string {
  const length = prefix.length + RANDOM_CHARACTERS
  let secret = prefix
  while (secret.length < length) {
    for (const byte of randomBytes(RANDOM_CHARACTERS)) {
      // 248 is the largest multiple of 62 within a byte; higher bytes would make some characters more likely than others.
      if (byte < 248 && secret.length < length) secret += ALPHABET.charAt(byte % ALPHABET.length)
    }
  }
  return secret
}

/**
 * The hash by which a key or a ticket is stored and found. One round of SHA-256 is enough, because a key has too many bits to guess.
 *
 * @returns 32 bytes
 */
export function hashApiKey(key: string): Buffer {
  return hash('sha256', key, 'buffer')
}

/** The first characters of a key, by which people recognize it in a list. */
export function hintOfApiKey(key: string): string {
  return key.slice(0, key.indexOf('_') + 5)
}
