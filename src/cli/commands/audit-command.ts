import { given } from '../../domain/collections.ts'
import { type AuditEntry, listAuditEntries } from '../../store/audit-repository.ts'
import { type Command, EXIT_GOOD, parseAccountName, writeList } from '../shared/command.ts'
import { STORE_VARIABLES, withStore } from '../shared/with-store.ts'

/** `audit`: one line a change, columns separated by tabs. */
const auditCommand: Command = {
  path: ['audit'],
  summary:
    'List changes of API keys and refund wallets, and accepted unmatched events, oldest first: time, actor, action, key id (- for ' +
    'none), account, details.',
  takes: { '[--account A]': 'only this account' },
  environment: STORE_VARIABLES,
  async run({ options }, context) {
    const account = given(options.account, parseAccountName)
    const entries = await withStore(context, (knex) => listAuditEntries(knex, { account }))
    writeList(context, entries.map(auditLineOf), 'change')
    return EXIT_GOOD
  },
}

export const commands: readonly Command[] = [auditCommand]

/** A line of the audit log, columns separated by tabs. */
function auditLineOf({ at, actor, action, keyId = '-', account, details }: AuditEntry): string {
  return [at.toISOString(), actor, action, keyId, account, JSON.stringify(details)].join('\t')
}
