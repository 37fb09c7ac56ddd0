import { USUAL_SHARE } from '../../domain/account.ts'
import { given } from '../../domain/collections.ts'
import { explainOrigin } from '../../domain/hosts/origin.ts'
import { suggestName } from '../../domain/nearest.ts'
import { requireDate, requireNote, requireRight } from '../../domain/require-input.ts'
import { readAll, readEach } from '../../errors/gather-errors.ts'
import { waybillError } from '../../errors/waybill-error.ts'
import { explainScopes, isOperators, isScope, PUBLISHABLE_SCOPES, type Scope, scopes } from './api-key.ts'
import { parseShop, type Shop, type ShopInput } from './shop.ts'

/** What a key may do, and how much. */
export interface KeyTerms {
  readonly scopes: readonly Scope[]
  /** Calls a minute; 0 for no limit. */
  readonly callsPerMinute: number
  /** The part of a process's running calls that nobody takes from the key, above 0 and at most 1; undefined for {@link USUAL_SHARE}. */
  readonly share?: number | undefined
  /** The origins whose pages may use it; undefined for a secret key. A key with origins is publishable. */
  readonly origins?: readonly string[] | undefined
  /** Of a publishable key. */
  readonly shop?: Shop | undefined
  /** The account's own. */
  readonly note?: string | undefined
  readonly expiresAt?: Date | undefined
}

/** The terms of a new key, as somebody writes them. What is undefined was not given. */
export interface KeyInput extends ShopInput {
  readonly scopes?: readonly string[] | undefined
  /** Of a publishable key; none for a secret one. */
  readonly origins?: readonly string[] | undefined
  /** Calls a minute. */
  readonly rate?: number | undefined
  readonly share?: string | undefined
  readonly note?: string | undefined
  readonly expiresAt?: string | undefined
}

/** Calls a minute of a key that was created without a limit of its own. */
export const DEFAULT_CALLS_PER_MINUTE = 300
const MAX_CALLS_PER_MINUTE = 1_000_000

/** More would make the answer to every preflight slow to find. */
const MAX_ORIGINS = 100

/** How long a rotated key may go on, in milliseconds. */
const MAX_OVERLAP_MS = 30 * 86_400_000

/** Reads the terms of a new key. @throws one WaybillError for all that are wrong */
export function parseKeyTerms(input: KeyInput, now: Date): KeyTerms {
  const { origins = [], rate, share, note, expiresAt } = input
  const isForPages = origins.length > 0
  const ofOthers = isForPages
    ? (['scopes', 'rate', 'share'] as const)
    : (['name', 'logo', 'color', 'cornerRadius'] as const)
  const detail = isForPages ? 'a publishable key has none of its own' : 'it is of publishable keys, which have origins'
  const isGiven = (name: keyof KeyInput) =>
    input[name] !== undefined && (name !== 'scopes' || input.scopes?.length !== 0)
  readEach(ofOthers, (name) => requireRight(name, input[name], isGiven(name) ? detail : undefined))
  return readAll({
    scopes: () => (isForPages ? PUBLISHABLE_SCOPES : parseScopes(input.scopes ?? [])),
    origins: () => (isForPages ? parseOrigins(origins) : undefined),
    callsPerMinute: () => (isForPages ? 0 : parseRate(rate ?? DEFAULT_CALLS_PER_MINUTE)),
    share: () => given(share, parseShare),
    shop: () => parseShop(input),
    note: () => given(note, (text) => requireNote('note', text)),
    expiresAt: () => given(expiresAt, (text) => parseExpiry(text, now)),
  })
}

/** @throws WaybillError INVALID_FIELD for an overlap of a rotation, in milliseconds, that is too long */
export function requireOverlap(overlapMs: number): void {
  const isOne = Number.isInteger(overlapMs) && overlapMs >= 0 && overlapMs <= MAX_OVERLAP_MS
  requireRight('overlapSeconds', overlapMs, isOne ? undefined : 'it is not between 0 and 30 days')
}

/**
 * Explains which rights a key would hand out, or end, that it does not hold. An operator's key is handed out by a command alone: it sees what
 * belongs to no account, which even a platform key does not.
 *
 * @param isOwnAccount - whether the other key is of the account of the key itself: a platform key acts for other accounts, and makes no platform
 *   keys in them
 * @returns undefined where it may
 */
export function explainBeyondScopes(
  { scopes: wanted }: KeyTerms,
  { scopes: held }: KeyTerms,
  isOwnAccount: boolean,
): string | undefined {
  const missing = wanted.filter((scope) => !held.includes(scope))
  if (missing.length > 0) return `it lacks ${missing.join(', ')}`
  if (isOperators(wanted)) return 'operations:read alone makes an operator’s key, which commands alone change'
  if (wanted.includes('accounts:any') && !isOwnAccount) return 'accounts:any is for keys of its own account'
  return undefined
}

/** The same for limits of a key and its life. @param isSelf - whether the key replaces itself, with the lifetime that it had */
export function explainBeyondLimits(wanted: KeyTerms, own: KeyTerms, isSelf: boolean): string | undefined {
  const limitOf = ({ callsPerMinute }: KeyTerms) => (callsPerMinute === 0 ? Infinity : callsPerMinute)
  const isForPages = wanted.origins !== undefined
  if (!isForPages && limitOf(wanted) > limitOf(own)) return `its rate is ${own.callsPerMinute} calls a minute`
  if (!isForPages && (wanted.share ?? USUAL_SHARE) > (own.share ?? USUAL_SHARE)) {
    return `its share is ${own.share ?? USUAL_SHARE}`
  }
  const ends = own.expiresAt
  if (isSelf || ends === undefined || (wanted.expiresAt !== undefined && wanted.expiresAt <= ends)) return undefined
  return `it ends at ${ends.toISOString()}`
}

function parseScopes(names: readonly string[]): readonly Scope[] {
  if (names.length === 0) throw waybillError('MISSING_FIELD', { field: 'scopes' })
  const held = readEach([...new Set(names)], (value) => {
    if (isScope(value)) return value
    throw waybillError('UNKNOWN_ENUM_VALUE', { field: 'scopes', value, suggestion: suggestName(value, scopes) })
  })
  return requireRight('scopes', held, explainScopes(held))
}

function parseOrigins(texts: readonly string[]): readonly string[] {
  const origins = [...new Set(texts)]
  const tooMany = origins.length > MAX_ORIGINS ? `it has ${origins.length} origins, at most ${MAX_ORIGINS}` : undefined
  const explain = (origin: string) => given(explainOrigin(origin), (detail) => `"${origin}" is no origin: ${detail}`)
  return requireRight('origins', origins, tooMany ?? origins.map(explain).find((wrong) => wrong !== undefined))
}

function parseRate(rate: number): number {
  const isRate = Number.isInteger(rate) && rate >= 0 && rate <= MAX_CALLS_PER_MINUTE
  const wrong = `use 1 to ${MAX_CALLS_PER_MINUTE} calls a minute, or 0 for no limit`
  return requireRight('rate', rate, isRate ? undefined : wrong)
}

function parseShare(text: string): number {
  const share = /^(?:0\.\d{1,4}|1(?:\.0{1,4})?)$/.test(text) ? Number(text) : Number.NaN
  const wrong = `"${text}" is no number above 0 and at most 1 with up to 4 decimals, such as 0.25`
  return requireRight('share', share, share > 0 ? undefined : wrong)
}

function parseExpiry(text: string, now: Date): Date {
  const expiresAt = new Date(requireDate('expiresAt', text).lastMs)
  if (expiresAt > now) return expiresAt
  throw waybillError('EXPIRY_PAST', { field: 'expiresAt', value: expiresAt.toISOString() })
}
