import type { Knex } from 'knex'
import { createApiKeyRepository } from '../auth/sql/api-key-repository.ts'
import type { Account } from '../domain/account.ts'
import type { CommandContext } from './command.ts'

/** @returns undefined when there is no account of that name, after a message on standard error */
export async function findAccount(
  knex: Knex,
  name: string,
  { stderr }: Pick<CommandContext, 'stderr'>,
): Promise<Account | undefined> {
  const found = await createApiKeyRepository(knex).findAccount(name)
  if (found === undefined) stderr.write(`there is no account "${name}"\n`)
  return found
}
