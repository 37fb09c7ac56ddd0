import { resolve } from 'node:path'
import type { Writable } from 'node:stream'
import type { Knex } from 'knex'
import { formatPaymentLine } from '../../domain/payment-line.ts'
import { formatRequestLine } from '../../domain/request-line.ts'
import { exportRequests } from '../../requests/sql/export-requests-repository.ts'
import { exportPayments } from '../../search/export/export-payments.ts'
import {
  type Command,
  type CommandContext,
  type CommandInput,
  counted,
  EXIT_GOOD,
  parseAccountName,
} from '../shared/command.ts'
import { refuseOtherThanFile, replaceFile } from '../shared/replace-file.ts'
import { STORE_VARIABLES, withAccount } from '../shared/with-store.ts'
import { writeFully } from '../shared/write-fully.ts'

type WriteRows = (knex: Knex, accountId: number, out: Writable, signal: AbortSignal) => Promise<number>

/** `export payments --account A`: one line for each. */
function exportOf(path: string, thing: string, write: WriteRows): Command {
  return {
    path: ['export', path],
    summary: `Write all ${thing}s of an account, oldest first, in the form that import reads: one JSON object a line.`,
    takes: {
      '--account A': `account whose ${thing}s are written`,
      '[--output FILE]':
        'file to write, readable only by its owner; replaced once everything is written (default standard output)',
    },
    environment: STORE_VARIABLES,
    run: (input, context) => runExport(thing, write, input, context),
  }
}

export const commands: readonly Command[] = [
  exportOf('requests', 'payment request', writeRequests),
  exportOf('payments', 'payment', writePayments),
]

async function runExport(thing: string, write: WriteRows, { options }: CommandInput, context: CommandContext) {
  const name = parseAccountName(options.account)
  const target = options.output === undefined ? undefined : resolve(context.workingFolder, options.output)
  if (target !== undefined) await refuseOtherThanFile('--output', target, ', or leave it out for standard output')
  return withAccount(context, name, async (knex, account) => {
    const writeAll = (out: Writable) => write(knex, account.id, out, context.signal)
    const count = await (target === undefined ? writeAll(context.stdout) : replaceFile(target, writeAll))
    context.stderr.write(`${counted(count, thing)}\n`)
    return EXIT_GOOD
  })
}

async function writePayments(knex: Knex, accountId: number, out: Writable, signal: AbortSignal): Promise<number> {
  let count = 0
  await exportPayments({ knex, filter: { accountId }, signal }, async (page) => {
    count += page.length
    if (page.length > 0) await writeFully(out, page.map((payment) => `${formatPaymentLine(payment)}\n`).join(''))
  })
  return count
}

async function writeRequests(knex: Knex, accountId: number, out: Writable, signal: AbortSignal): Promise<number> {
  let count = 0
  await exportRequests({ knex, accountId, signal }, async (page) => {
    count += page.length
    await writeFully(out, page.map((request) => `${formatRequestLine(request)}\n`).join(''))
  })
  return count
}
