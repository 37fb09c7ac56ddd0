import type { Knex } from 'knex'
import { isInForce } from '../../auth/find-key-in-force.ts'
import { createApiKeyRepository } from '../../auth/sql/api-key-repository.ts'
import { readStoreConfig } from '../../config.ts'
import type { Account } from '../../domain/account.ts'
import { checkAccount, listStoredAccounts } from '../../store/proof/check-account.ts'
import type { Difference } from '../../store/proof/difference.ts'
import { repairAccount } from '../../store/proof/repair-account.ts'
import { parseAccountName } from '../account-option.ts'
import type { Command } from '../command.ts'
import { EXIT_FAILED, EXIT_GOOD } from '../run-command-line.ts'
import { STORE_VARIABLES, withStore } from '../with-store.ts'
import { writeFully } from '../write-fully.ts'
import { ageLineOf } from './keys-command.ts'

/** How often progress is reported. */
const REPORT_INTERVAL_MS = 1_000

/** `check`: one line a difference, columns separated by tabs. */
export const checkCommand: Command = {
  path: ['check'],
  summary:
    'Check what is derived from payments: statistics, the log of changes, the paid amounts of requests. One line a difference: ' +
    'account, kind, place, stored value, expected value. The service may run. Exit code 1 when there is a difference. API keys in force are ' +
    'listed on standard error, with their age: a restored database brings revoked ones back.',
  options: [
    { name: 'account', value: 'A', help: 'only this account' },
    {
      name: 'repair',
      help: 'recompute where there is a difference; writers of the account wait meanwhile, and watches restart where the log was wrong',
    },
  ],
  environment: STORE_VARIABLES,
  async run({ options }, context) {
    const name = options.account === undefined ? undefined : parseAccountName(options.account)
    const config = readStoreConfig(context.environment, context.workingFolder)
    const report = (text: string) => writeFully(context.stderr, text).catch(() => {})
    return withStore(config, context, async (knex) => {
      const accounts = await findAccounts(knex, name)
      if (accounts.length === 0 && name !== undefined) {
        await report(`there is no account "${name}"\n`)
        return EXIT_FAILED
      }
      let reportedMs = performance.now()
      /** @returns the number of differences by kind */
      async function check(account: Account): Promise<Map<Difference['check'], number>> {
        const found = new Map<Difference['check'], number>()
        const { payments, changes, requests } = await checkAccount(knex, account.id, {
          signal: context.signal,
          async onProgress(what) {
            if (performance.now() - reportedMs < REPORT_INTERVAL_MS) return
            reportedMs = performance.now()
            await report(`${account.name}: ${what}\n`)
          },
          async onDifference(difference) {
            found.set(difference.check, (found.get(difference.check) ?? 0) + 1)
            await writeFully(context.stdout, `${lineOf(account, difference)}\n`)
          },
        })
        const [paid, logged, asked] = [payments, changes, requests].map((n) => n.toLocaleString('en'))
        await report(`${account.name}: ${paid} payments, ${logged} changes, ${asked} requests\n`)
        return found
      }

      let left = 0
      for (const account of accounts) {
        let found = await check(account)
        if (found.size > 0 && options.repair !== undefined) {
          await report(`${account.name}: ${describe(found)}; repairing\n`)
          const terms = { signal: context.signal, now: new Date(), isLogWrong: found.has('changes') }
          await repairAccount(knex, account.id, terms)
          found = await check(account)
        }
        left += sumOf(found)
      }
      await report(await describeKeys(knex, name))
      await report(`${left === 0 ? 'no' : left.toLocaleString('en')} ${left === 1 ? 'difference' : 'differences'}\n`)
      return left === 0 ? EXIT_GOOD : EXIT_FAILED
    })
  },
}

/** The keys in force with their age, one a line, oldest first; nothing where there are none. */
async function describeKeys(knex: Knex, accountName: string | undefined): Promise<string> {
  const now = new Date()
  const keys = (await createApiKeyRepository(knex).list(accountName)).filter((key) => isInForce(key, now))
  if (keys.length === 0) return ''
  const count = `${keys.length.toLocaleString('en')} API ${keys.length === 1 ? 'key' : 'keys'} in force`
  return [count, ...keys.map((key) => ageLineOf(key, now))].map((line) => `${line}\n`).join('')
}

const sumOf = (found: ReadonlyMap<string, number>) => [...found.values()].reduce((sum, n) => sum + n, 0)

function describe(found: ReadonlyMap<string, number>): string {
  return [...found].map(([what, n]) => `${n.toLocaleString('en')} of ${what}`).join(', ')
}

async function findAccounts(knex: Knex, name: string | undefined): Promise<readonly Account[]> {
  if (name === undefined) return listStoredAccounts(knex)
  const account = await createApiKeyRepository(knex).findAccount(name)
  return account === undefined ? [] : [account]
}

function lineOf({ name }: Account, { check, where, stored, expected }: Difference): string {
  return [name, check, where, stored, expected].join('\t')
}
