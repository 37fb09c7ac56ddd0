import { hash, randomBytes } from 'node:crypto'

/** API keys: `wb_` and 40 base62 characters, 238 bits; shown once, stored as a hash. */

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const RANDOM_CHARACTERS = 40
const KEY_PATTERN = /^wb_[0-9A-Za-z]{40}$/

/** What a key may do. `accounts:any` makes a platform key, which names the account on each call. */
export const scopes = ['routes:read', 'payments:read', 'requests:read', 'requests:write', 'accounts:any'] as const
export type Scope = (typeof scopes)[number]

/** Whether a text is a scope. */
export function isScope(text: string): text is Scope {
  return (scopes as readonly string[]).includes(text)
}

/** Whether a text has the form of a key. */
export function isApiKey(text: string): boolean {
  return KEY_PATTERN.test(text)
}

/** Draws a key. */
export function createApiKey(): string {
  return drawSecret('wb_')
}

/** Draws 40 base62 characters behind a prefix. */
export function drawSecret(prefix: string): string {
  const length = prefix.length + RANDOM_CHARACTERS
  let secret = prefix
  while (secret.length < length) {
    for (const byte of randomBytes(RANDOM_CHARACTERS)) {
      // 248 is the largest multiple of 62 in a byte: what lies above would make some characters likelier than others.
      if (byte < 248 && secret.length < length) secret += ALPHABET.charAt(byte % ALPHABET.length)
    }
  }
  return secret
}

/**
 * The hash by which a key or a ticket is stored and found. One round of SHA-256 is enough, since a key has too many bits to be guessed.
 *
 * @returns 32 bytes
 */
export function hashApiKey(key: string): Buffer {
  return hash('sha256', key, 'buffer')
}

/** The part of a key by which people tell keys apart in a list. */
export function hintOfApiKey(key: string): string {
  return key.slice(0, 'wb_'.length + 4)
}
