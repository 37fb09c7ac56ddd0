import type { Knex } from 'knex'
import { createApiKeyRepository } from '../auth/api-key-repository.ts'
import { readStoreConfig } from '../config.ts'
import { checkAccount, type Difference, listStoredAccounts } from '../db/check-account.ts'
import type { Account } from '../domain/account.ts'
import { parseAccountName } from './account-option.ts'
import type { Command } from './command.ts'
import { EXIT_FAILED, EXIT_GOOD } from './run-command-line.ts'
import { STORE_VARIABLES, withStore } from './with-store.ts'
import { writeFully } from './write-fully.ts'

/** How often people are told how far it is. */
const EVERY_MS = 1_000

/** `check`: a line a difference, columns separated by tabs. */
export const checkCommand: Command = {
  path: ['check'],
  summary:
    'Prove what is derived of payments: statistics, the log of changes, what requests were paid. One line a difference: account, what, ' +
    'where, what is stored, what was expected. The service may run. Exit code 1 when there is a difference.',
  options: [{ name: 'account', value: 'A', help: 'only this account' }],
  environment: STORE_VARIABLES,
  async run({ options }, context) {
    const name = options.account === undefined ? undefined : parseAccountName(options.account)
    const config = readStoreConfig(context.environment, context.workingFolder)
    const say = (text: string) => writeFully(context.stderr, text).catch(() => {})
    return withStore(config, context, async (knex) => {
      const accounts = await findAccounts(knex, name)
      if (accounts.length === 0 && name !== undefined) {
        await say(`there is no account "${name}"\n`)
        return EXIT_FAILED
      }
      let saidMs = performance.now()
      let differences = 0
      for (const account of accounts) {
        const checked = await checkAccount(knex, account.id, {
          signal: context.signal,
          async onProgress(what) {
            if (performance.now() - saidMs < EVERY_MS) return
            saidMs = performance.now()
            await say(`${account.name}: ${what}\n`)
          },
          async onDifference(difference) {
            differences++
            await writeFully(context.stdout, `${lineOf(account, difference)}\n`)
          },
        })
        const { payments, changes, requests } = checked
        const [paid, logged, asked] = [payments, changes, requests].map((n) => n.toLocaleString('en'))
        await say(`${account.name}: ${paid} payments, ${logged} changes, ${asked} requests\n`)
      }
      await say(differences === 0 ? 'no differences\n' : `${differences.toLocaleString('en')} differences\n`)
      return differences === 0 ? EXIT_GOOD : EXIT_FAILED
    })
  },
}

async function findAccounts(knex: Knex, name: string | undefined): Promise<readonly Account[]> {
  if (name === undefined) return listStoredAccounts(knex)
  const account = await createApiKeyRepository(knex).findAccount(name)
  return account === undefined ? [] : [account]
}

function lineOf({ name }: Account, { check, where, stored, expected }: Difference): string {
  return [name, check, where, stored, expected].join('\t')
}
