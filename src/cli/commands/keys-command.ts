import { createReadStream } from 'node:fs'
import { PUBLISHABLE_CALLS_PER_MINUTE } from '../../auth/find-key-in-force.ts'
import {
  DEFAULT_CALLS_PER_MINUTE,
  type IssuedApiKey,
  issueApiKey,
  issuePublishableKey,
  rotateApiKey,
} from '../../auth/manage-keys.ts'
import { explainScopes, isOperators, isScope, type Scope, scopes } from '../../auth/rules/api-key.ts'
import { MAX_LOGO_BYTES, parseShop, type Shop } from '../../auth/rules/shop.ts'
import { type ApiKeyRepository, createApiKeyRepository, type StoredApiKey } from '../../auth/sql/api-key-repository.ts'
import { parseDateBound } from '../../domain/date-bound.ts'
import { explainOrigin } from '../../domain/hosts/origin.ts'
import { suggestName } from '../../domain/nearest.ts'
import { readDatabaseTime } from '../../postgres/database-clock.ts'
import {
  type Command,
  type CommandContext,
  type CommandInput,
  counted,
  EXIT_FAILED,
  EXIT_GOOD,
  parseAccountName,
  UsageError,
  writeList,
} from '../shared/command.ts'
import { STORE_VARIABLES, withStore } from '../shared/with-store.ts'

const keyId = 'id of the key, from keys list'
const DEFAULT_OVERLAP = '24h'

/** `keys create`: writes only the key to standard output. */
const keysCreate: Command = {
  path: ['keys', 'create'],
  summary:
    'Create an API key. It is shown only once. A publishable key is for the pages of some origins: it reads one request and its routes.',
  takes: {
    '--account A': 'account that the key belongs to',
    '[--scopes a,b]': `what the key may do, one or more of ${scopes.join(', ')}; not for a publishable key`,
    '[--publishable]': 'a key that may stand in web pages; needs --origins',
    '[--origins o,p]': 'the exact origins of those pages, such as https://shop.example,https://www.shop.example',
    '[--name TEXT]': 'of a publishable key: the shop that the checkout page names, at most 80 characters',
    '[--logo FILE]': 'of a publishable key: its logo, a PNG, JPEG, GIF, WebP or SVG of at most 16 KiB',
    '[--color #RRGGBB]': 'of a publishable key: the colour of the checkout page’s buttons',
    '[--radius N]': 'of a publishable key: the radius of its corners in pixels, 0 to 32',
    '[--operator]': 'for operations:read, which shows unmatched events of all accounts: the key is the operator’s',
    '[--rate N]': `calls a minute (default ${DEFAULT_CALLS_PER_MINUTE}; 0 for no limit)`,
    '[--share S]':
      'the part of the calls of a busy process that nobody takes from the key, above 0 and at most 1 (default 0.1)',
    '[--expires WHEN]': 'its last day in UTC (2027-12-31), a time, or a duration such as 90d (default never)',
  },
  environment: STORE_VARIABLES,
  async run({ options }, context) {
    const expiry = options.expires === undefined ? undefined : parseExpiry(options.expires)
    const common = { account: parseAccountName(options.account), actor: context.actor }
    const issued = (
      issue: (
        repository: ApiKeyRepository,
        times: { now: Date; expiresAt?: Date | undefined },
      ) => Promise<IssuedApiKey>,
    ) => withRepository(context, (repository, now) => issue(repository, { now, expiresAt: expiry?.(now) }))
    if (options['publishable'] !== undefined) {
      refuseBeside('publishable', options, ['scopes', 'operator', 'rate', 'share'])
      const terms = { ...common, origins: parseOrigins(options['origins']), shop: await readShop(options) }
      showOnce(await issued((repository, times) => issuePublishableKey(repository, { ...terms, ...times })), context)
      return EXIT_GOOD
    }
    const forPages = ['origins', ...SHOP_OPTIONS].find((name) => options[name] !== undefined)
    if (forPages !== undefined) throw new UsageError(`--${forPages} goes with --publishable`)
    const terms = {
      ...common,
      scopes: parseScopes(options.scopes, options['operator'] !== undefined),
      callsPerMinute: options.rate === undefined ? DEFAULT_CALLS_PER_MINUTE : parseRate(options.rate),
      share: options.share === undefined ? undefined : parseShare(options.share),
    }
    showOnce(await issued((repository, times) => issueApiKey(repository, { ...terms, ...times })), context)
    return EXIT_GOOD
  },
}

/** `keys rotate ID`: writes only the new key to standard output. */
const keysRotate: Command = {
  path: ['keys', 'rotate'],
  summary: 'Replace an API key by a new one. The old key stays valid for a while.',
  takes: {
    ID: keyId,
    '[--overlap T]': `how long the old key stays valid (default ${DEFAULT_OVERLAP}; 0h ends it now)`,
  },
  environment: STORE_VARIABLES,
  async run({ positionals: [text = ''], options }, context) {
    const overlapMs = parseDuration('overlap', options.overlap ?? DEFAULT_OVERLAP)
    const terms = { id: parseKeyId(text), overlapMs, actor: context.actor }
    const issued = await withRepository(context, (repository, now) => rotateApiKey(repository, { ...terms, now }))
    if (issued === undefined) {
      context.stderr.write(`there is no key ${text} in force\n`)
      return EXIT_FAILED
    }
    showOnce(issued, context)
    const end = new Date(issued.stored.createdAt.getTime() + overlapMs).toISOString()
    context.stderr.write(`the old key ${text} is valid until ${end} at the latest\n`)
    return EXIT_GOOD
  },
}

/** `keys list`: one line a key, columns separated by tabs. */
const keysList: Command = {
  path: ['keys', 'list'],
  summary:
    'List API keys, expired and revoked ones included: id, account, first characters, scopes, created, state, ' +
    'calls a minute, expiry, last use.',
  takes: { '[--account A]': 'only this account' },
  environment: STORE_VARIABLES,
  async run({ options }, context) {
    const name = options.account === undefined ? undefined : parseAccountName(options.account)
    const lines = await withRepository(context, async (repository, now) =>
      (await repository.list(name)).map((key) => lineOf(key, now)),
    )
    writeList(context, lines, 'key')
    return EXIT_GOOD
  },
}

/** `keys revoke ID`; with `--all-except` one line a revoked key, in the form of `keys list`. */
const keysRevoke: Command = {
  path: ['keys', 'revoke'],
  summary:
    'Revoke an API key. Running processes refuse it within 5 seconds. With --all-except every key in force but those named, as after a ' +
    'restore of an older state, which brings revoked keys back: one line a key.',
  takes: {
    '[ID]': keyId,
    '[--all-except ID,ID]': 'revoke all keys but these, from keys list; none for no key',
    '[--account A]': 'with --all-except: only keys of this account',
  },
  environment: STORE_VARIABLES,
  async run({ positionals: [text], options }, context) {
    const { account: owner, 'all-except': kept } = options
    if (kept !== undefined && text === undefined) return revokeOthers(parseKeptIds(kept), owner, context)
    if (text === undefined) throw new UsageError('ID is missing: name a key, or those to keep with --all-except')
    if (kept !== undefined) throw new UsageError('--all-except does not go with the id of a key')
    if (owner !== undefined) throw new UsageError('--account goes with --all-except')
    const id = parseKeyId(text)
    const revoked = await withRepository(context, (repository, now) => repository.revoke(id, now, context.actor))
    context.stderr.write(revoked ? `revoked ${id}\n` : `there is no key ${id} in force\n`)
    return revoked ? EXIT_GOOD : EXIT_FAILED
  },
}

export const commands: readonly Command[] = [keysCreate, keysRotate, keysList, keysRevoke]

async function revokeOthers(keptIds: readonly string[], owner: string | undefined, context: CommandContext) {
  const accountName = owner === undefined ? undefined : parseAccountName(owner)
  const result = await withRepository(context, async (repository, at) => ({
    ...(await repository.revokeOthers({ keptIds, accountName, change: { actor: context.actor, at } })),
    at,
  }))
  if ('missing' in result) {
    context.stderr.write(`there is no key ${result.missing.join(', ')} in force; no key was revoked\n`)
    return EXIT_FAILED
  }
  for (const key of result.revoked) context.stdout.write(`${lineOf(key, result.at)}\n`)
  context.stderr.write(`revoked ${counted(result.revoked.length, 'key')}; kept ${keptIds.length}\n`)
  return EXIT_GOOD
}

/** @param work - gets the time of the database's clock, by which keys expire */
function withRepository<T>(
  context: CommandContext,
  work: (repository: ApiKeyRepository, now: Date) => Promise<T>,
): Promise<T> {
  return withStore(context, async (knex) => work(createApiKeyRepository(knex), await readDatabaseTime(knex)))
}

function showOnce({ key, stored }: IssuedApiKey, { stdout, stderr }: CommandContext): void {
  stdout.write(`${key}\n`)
  const { id, account, scopes, origins, expiresAt } = stored
  const may = origins === undefined ? scopes.join(', ') : `for pages of ${origins.join(', ')}`
  const terms = [may, rateOf(stored), ...(expiresAt ? [`until ${expiresAt.toISOString()}`] : [])]
  stderr.write(`key ${id} of ${account.name}: ${terms.join('; ')}. Keep it now: it is not shown again.\n`)
}

function parseKeyId(id: string): string {
  if (/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(id)) return id.toLowerCase()
  throw new UsageError(`"${id}" is not the id of a key`)
}

function parseKeptIds(text: string): readonly string[] {
  if (text === 'none') return []
  return [...new Set(text.split(',').map((id) => parseKeyId(id.trim())))]
}

function refuseBeside(option: string, given: CommandInput['options'], others: readonly string[]): void {
  const other = others.find((name) => given[name] !== undefined)
  if (other !== undefined) throw new UsageError(`--${other} does not go with --${option}`)
}

function parseScopes(text: string | undefined, isForOperator: boolean): readonly Scope[] {
  if (text === undefined)
    throw new UsageError('--scopes is missing; for a key for pages use --publishable and --origins')
  const names = [...new Set(text.split(',').map((name) => name.trim()))]
  const held = names.map((name) => {
    if (isScope(name)) return name
    throw new UsageError(`"${name}" is not a scope; ${suggestName(name, scopes)}`)
  })
  const detail = explainScopes(held)
  if (detail !== undefined) throw new UsageError(`--scopes is "${text}": ${detail}`)
  if (isOperators(held) && !isForOperator) {
    throw new UsageError(
      '--scopes has operations:read, which shows unmatched events of all accounts: add --operator, and never hand the key to an account',
    )
  }
  if (isForOperator && !isOperators(held)) {
    throw new UsageError('--operator is for keys with operations:read and without accounts:any')
  }
  return held
}

function lineOf(key: StoredApiKey, now: Date): string {
  const { id, account, hint, scopes, origins, createdAt, expiresAt, lastUsedAt } = key
  return [
    id,
    account.name,
    `${hint}…`,
    origins === undefined ? scopes.join(',') : `publishable for ${origins.join(',')}`,
    createdAt.toISOString(),
    stateOf(key, now),
    rateOf(key),
    expiresAt === undefined ? 'no expiry' : `expires ${expiresAt.toISOString()}`,
    lastUsedAt === undefined ? 'never used' : `used ${lastUsedAt.toISOString()}`,
  ].join('\t')
}

function stateOf({ revokedAt, expiresAt }: StoredApiKey, now: Date): string {
  if (revokedAt !== undefined) return `revoked ${revokedAt.toISOString()}`
  return expiresAt !== undefined && expiresAt <= now ? 'expired' : 'in force'
}

function rateOf({ callsPerMinute, share, origins }: StoredApiKey): string {
  if (origins !== undefined) return `${PUBLISHABLE_CALLS_PER_MINUTE}/min an address`
  const rate = callsPerMinute === 0 ? 'no limit' : `${callsPerMinute}/min`
  return share === undefined ? rate : `${rate}, share ${share}`
}

const UNIT_MS: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 }
const MAX_DURATION_MS = 100 * 365 * 86_400_000
const MAX_CALLS_PER_MINUTE = 1_000_000

/**
 * Parses a duration such as `30m`, `24h`, `90d` or `2w`; at most a hundred years.
 *
 * @returns milliseconds
 * @throws UsageError
 */
export function parseDuration(option: string, text: string): number {
  const durationMs = durationOf(text)
  if (durationMs !== undefined) return durationMs
  throw new UsageError(`--${option} "${text}" is not a duration: use a number and m, h, d or w, such as 24h`)
}

/**
 * Parses when a key expires: a duration from now, an RFC 3339 time, or the last day in UTC on which it is valid.
 *
 * @returns tells the time when it is now; it throws UsageError for one in the past
 * @throws UsageError when the text has none of these forms
 */
export function parseExpiry(text: string): (now: Date) => Date {
  const durationMs = durationOf(text)
  if (durationMs !== undefined && durationMs > 0) return (now) => new Date(now.getTime() + durationMs)
  const bound = parseDateBound(text)
  if (!bound.ok) {
    throw new UsageError(`--expires "${text}" is neither a date such as 2027-12-31 nor a duration such as 90d`)
  }
  return (now) => {
    if (bound.lastMs <= now.getTime()) throw new UsageError(`--expires "${text}" is in the past`)
    return new Date(bound.lastMs)
  }
}

/**
 * Parses calls a minute; 0 is no limit.
 *
 * @throws UsageError
 */
export function parseRate(text: string): number {
  const rate = /^\d{1,7}$/.test(text) ? Number(text) : Number.NaN
  if (rate <= MAX_CALLS_PER_MINUTE) return rate
  throw new UsageError(
    `--rate "${text}" is not a number of calls a minute: use 1 to ${MAX_CALLS_PER_MINUTE}, or 0 for no limit`,
  )
}

/**
 * Parses the part of a process's running calls that a key keeps: `0.25`.
 *
 * @throws UsageError
 */
function parseShare(text: string): number {
  const share = /^(?:0\.\d{1,4}|1(?:\.0{1,4})?)$/.test(text) ? Number(text) : Number.NaN
  if (share > 0) return share
  throw new UsageError(
    `--share "${text}" is not a part of the process: use a number above 0 and at most 1 with up to 4 decimals, such as 0.25`,
  )
}

/** More would make the answer to every preflight slow to find. */
const MAX_ORIGINS = 100

/**
 * Parses the origins of a publishable key, separated by commas.
 *
 * @throws UsageError when there is none, or one is no exact origin
 */
export function parseOrigins(text = ''): readonly string[] {
  const origins = [...new Set(text.split(',').map((each) => each.trim()))].filter((each) => each !== '')
  if (origins.length === 0) {
    throw new UsageError('--origins is missing: list the origins of the pages, such as https://shop.example')
  }
  if (origins.length > MAX_ORIGINS)
    throw new UsageError(`--origins has ${origins.length} origins: at most ${MAX_ORIGINS}`)
  for (const origin of origins) {
    const detail = explainOrigin(origin)
    if (detail !== undefined) throw new UsageError(`--origins has "${origin}", which is no origin: ${detail}`)
  }
  return origins
}

const SHOP_OPTIONS = ['name', 'logo', 'color', 'radius']

/** Reads what the checkout page of a key shows of its shop. @throws UsageError */
async function readShop({ name, logo: file, color, radius }: CommandInput['options']): Promise<Shop | undefined> {
  const reading = file === undefined ? undefined : readStart(file, MAX_LOGO_BYTES + 1)
  const logo = await reading?.catch((error: NodeJS.ErrnoException) => {
    throw new UsageError(`--logo "${file}" cannot be read: ${error.code ?? error.message}`)
  })
  try {
    return parseShop({ name, logo, color, radius })
  } catch (error) {
    if (error instanceof RangeError) throw new UsageError(`--${error.message}`)
    throw error
  }
}

/** Reads no more of a file than so many bytes: a device has no end, and its size says nothing. */
async function readStart(path: string, bytes: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of createReadStream(path, { end: bytes - 1 })) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}

function durationOf(text: string): number | undefined {
  const [, digits, unit = ''] = /^(\d{1,8})([mhdw])$/.exec(text) ?? []
  if (digits === undefined) return undefined
  const durationMs = Number(digits) * (UNIT_MS[unit] ?? Number.NaN)
  return durationMs <= MAX_DURATION_MS ? durationMs : undefined
}
