import { createReadStream } from 'node:fs'
import { buffer } from 'node:stream/consumers'
import { PUBLISHABLE_CALLS_PER_MINUTE, stateOf } from '../../auth/find-key-in-force.ts'
import { createKeys, type IssuedApiKey, type Keys } from '../../auth/manage-keys.ts'
import { isOperators, isScope, scopes } from '../../auth/rules/api-key.ts'
import { DEFAULT_CALLS_PER_MINUTE } from '../../auth/rules/key-terms.ts'
import { MAX_LOGO_BYTES } from '../../auth/rules/shop.ts'
import { type ApiKeyRepository, createApiKeyRepository, type StoredApiKey } from '../../auth/sql/api-key-repository.ts'
import { given } from '../../domain/collections.ts'
import { readDatabaseTime } from '../../postgres/database-clock.ts'
import {
  type Command,
  type CommandContext,
  counted,
  EXIT_FAILED,
  EXIT_GOOD,
  parseAccountName,
  UsageError,
  writeList,
} from '../shared/command.ts'
import { asUsage, STORE_VARIABLES, withStore } from '../shared/with-store.ts'

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
    '[--note TEXT]': 'the account’s own note, which lists show',
    '[--expires WHEN]': 'its last day in UTC (2027-12-31), a time, or a duration such as 90d (default never)',
  },
  environment: STORE_VARIABLES,
  async run({ options }, context) {
    const { rate, share, note, name, color, radius, expires } = options
    const account = parseAccountName(options.account)
    const held = options.scopes?.split(',').map((each) => each.trim())
    const origins = (options['origins'] ?? '').split(',').flatMap((each) => each.trim() || [])
    if ((options['publishable'] !== undefined) !== origins.length > 0) {
      throw new UsageError('--publishable and --origins go together: list the origins of the pages')
    }
    judgeOperator(held ?? [], options['operator'] !== undefined)
    const shop = { name, color, logo: await given(options['logo'], readLogo), cornerRadius: given(radius, numberOf) }
    const terms = { scopes: held, origins, share, note, rate: given(rate, numberOf), ...shop }
    const issued = await withKeys(context, (keys, { now }) =>
      keys.create(account, { ...terms, expiresAt: given(expires, (text) => expiryOf(text, now)) }, context),
    )
    showOnce(issued, context)
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
    const id = parseKeyId(text)
    const issued = await withKeys(context, (keys) => keys.rotate({ id }, overlapMs, context))
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
    'calls a minute, expiry, last use, note.',
  takes: { '[--account A]': 'only this account' },
  environment: STORE_VARIABLES,
  async run({ options }, context) {
    const name = given(options.account, parseAccountName)
    const lines = await withKeys(context, async (_, { repository, now }) =>
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
    const { isNew } = await withKeys(context, (keys) => keys.revoke({ id }, context))
    context.stderr.write(isNew ? `revoked ${id}\n` : `there is no key ${id} in force\n`)
    return isNew ? EXIT_GOOD : EXIT_FAILED
  },
}

export const commands: readonly Command[] = [keysCreate, keysRotate, keysList, keysRevoke]

async function revokeOthers(keptIds: readonly string[], owner: string | undefined, context: CommandContext) {
  const accountName = given(owner, parseAccountName)
  const result = await withKeys(context, async (_, { repository, now: at }) => ({
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

interface Opened {
  readonly repository: ApiKeyRepository
  /** By the database's clock, by which keys expire. */
  readonly now: Date
}

function withKeys<T>(context: CommandContext, work: (keys: Keys, opened: Opened) => Promise<T>): Promise<T> {
  return withStore(context, async (knex) => {
    const repository = createApiKeyRepository(knex)
    const now = await readDatabaseTime(knex)
    return asUsage(work(createKeys({ repository, now: () => now }), { repository, now }))
  })
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

function judgeOperator(names: readonly string[], isForOperator: boolean): void {
  const held = names.filter(isScope)
  if (isOperators(held) && !isForOperator) {
    throw new UsageError(
      '--scopes has operations:read, which shows unmatched events of all accounts: add --operator, and never hand the key to an account',
    )
  }
  if (isForOperator && !isOperators(held)) {
    throw new UsageError('--operator is for keys with operations:read and without accounts:any')
  }
}

/** @returns NaN for what is no number as people write it */
const numberOf = (text: string) => (/^\d{1,9}(?:\.\d{1,9})?$/.test(text) ? Number(text) : Number.NaN)

function lineOf(key: StoredApiKey, now: Date): string {
  const { id, account, hint, scopes, origins, createdAt, expiresAt, lastUsedAt, revokedAt, note } = key
  return [
    id,
    account.name,
    `${hint}…`,
    origins === undefined ? scopes.join(',') : `publishable for ${origins.join(',')}`,
    createdAt.toISOString(),
    [words[stateOf(key, now)], ...(revokedAt === undefined ? [] : [revokedAt.toISOString()])].join(' '),
    rateOf(key),
    expiresAt === undefined ? 'no expiry' : `expires ${expiresAt.toISOString()}`,
    lastUsedAt === undefined ? 'never used' : `used ${lastUsedAt.toISOString()}`,
    ...(note === undefined ? [] : [note]),
  ].join('\t')
}

const words = { IN_FORCE: 'in force', EXPIRED: 'expired', REVOKED: 'revoked' } as const

function rateOf({ callsPerMinute, share, origins }: StoredApiKey): string {
  if (origins !== undefined) return `${PUBLISHABLE_CALLS_PER_MINUTE}/min an address`
  const rate = callsPerMinute === 0 ? 'no limit' : `${callsPerMinute}/min`
  return share === undefined ? rate : `${rate}, share ${share}`
}

const UNIT_MS: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 }
const MAX_DURATION_MS = 100 * 365 * 86_400_000

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

/** When a key expires: a duration from now as a time, or a text that is read as one. */
export function expiryOf(text: string, now: Date): string {
  const durationMs = durationOf(text)
  return durationMs !== undefined && durationMs > 0 ? new Date(now.getTime() + durationMs).toISOString() : text
}

/** Reads the file of a logo, no further than is needed to see that it is too large: a device has no end. @throws UsageError */
function readLogo(file: string): Promise<Buffer> {
  return buffer(createReadStream(file, { end: MAX_LOGO_BYTES })).catch(({ message }: Error) => {
    throw new UsageError(`--logo "${file}" cannot be read: ${message}`)
  })
}

function durationOf(text: string): number | undefined {
  const [, digits, unit = ''] = /^(\d{1,8})([mhdw])$/.exec(text) ?? []
  if (digits === undefined) return undefined
  const durationMs = Number(digits) * (UNIT_MS[unit] ?? Number.NaN)
  return durationMs <= MAX_DURATION_MS ? durationMs : undefined
}
