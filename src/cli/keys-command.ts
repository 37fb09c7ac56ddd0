import { isScope, type Scope, scopes } from '../auth/api-key.ts'
import { createApiKeyRepository, type StoredApiKey } from '../auth/api-key-repository.ts'
import { issueApiKey } from '../auth/manage-keys.ts'
import { readStoreConfig } from '../config.ts'
import { isAccountName } from '../domain/account.ts'
import { suggestName } from '../domain/nearest.ts'
import { type Command, type CommandContext, UsageError } from './command.ts'
import { EXIT_FAILED, EXIT_GOOD } from './run-command-line.ts'
import { STORE_VARIABLES, withStore } from './with-store.ts'

const account = { name: 'account', value: 'A', help: 'account that the key belongs to' } as const

/** `keys create`: the key alone on standard output. */
export const keysCreate: Command = {
  path: ['keys', 'create'],
  summary: 'Make an API key. It is shown once.',
  options: [
    { ...account, required: true },
    { name: 'scopes', value: 'a,b', help: `what it may do, of ${scopes.join(', ')}`, required: true },
  ],
  environment: STORE_VARIABLES,
  async run({ options }, context) {
    const terms = { account: parseAccount(options.account), scopes: parseScopes(options.scopes), now: new Date() }
    const { key, stored } = await withRepository(context, (repository) => issueApiKey(repository, terms))
    context.stdout.write(`${key}\n`)
    context.stderr.write(
      `key ${stored.id} of ${stored.account.name}: ${stored.scopes.join(', ')}. Keep it now: it is not shown again.\n`,
    )
    return EXIT_GOOD
  },
}

/** `keys list`: a line a key, columns separated by tabs. */
export const keysList: Command = {
  path: ['keys', 'list'],
  summary: 'List API keys, revoked ones included: id, account, beginning, scopes, created, state.',
  options: [{ ...account, help: 'only this account' }],
  environment: STORE_VARIABLES,
  async run({ options }, context) {
    const name = options.account === undefined ? undefined : parseAccount(options.account)
    const keys = await withRepository(context, (repository) => repository.list(name))
    for (const key of keys) context.stdout.write(`${lineOf(key)}\n`)
    context.stderr.write(`${keys.length} ${keys.length === 1 ? 'key' : 'keys'}\n`)
    return EXIT_GOOD
  },
}

/** `keys revoke ID`. */
export const keysRevoke: Command = {
  path: ['keys', 'revoke'],
  summary: 'Revoke an API key. Running processes refuse it within 5 seconds.',
  positionals: [{ name: 'ID', help: 'id of the key, from keys list' }],
  environment: STORE_VARIABLES,
  async run({ positionals: [id = ''] }, context) {
    if (!/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(id)) throw new UsageError(`"${id}" is not the id of a key`)
    const revoked = await withRepository(context, (repository) => repository.revoke(id, new Date()))
    context.stderr.write(revoked ? `revoked ${id}\n` : `there is no key ${id} in force\n`)
    return revoked ? EXIT_GOOD : EXIT_FAILED
  },
}

function withRepository<T>(
  context: CommandContext,
  work: (repository: ReturnType<typeof createApiKeyRepository>) => Promise<T>,
): Promise<T> {
  const config = readStoreConfig(context.environment, context.workingFolder)
  return withStore(config, context, (knex) => work(createApiKeyRepository(knex)))
}

function parseAccount(name = ''): string {
  if (isAccountName(name)) return name
  throw new UsageError(
    `"${name}" is not an account: use 1 to 64 of a-z, 0-9, ., _ and -, beginning with a letter or digit`,
  )
}

function parseScopes(text = ''): readonly Scope[] {
  const names = [...new Set(text.split(',').map((name) => name.trim()))]
  return names.map((name) => {
    if (isScope(name)) return name
    throw new UsageError(`"${name}" is not a scope; ${suggestName(name, scopes)}`)
  })
}

function lineOf(key: StoredApiKey): string {
  const state = key.revokedAt === undefined ? 'in force' : `revoked ${key.revokedAt.toISOString()}`
  const created = key.createdAt.toISOString()
  return [key.id, key.account.name, `${key.hint}…`, key.scopes.join(','), created, state].join('\t')
}
