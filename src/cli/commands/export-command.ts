import { resolve } from 'node:path'
import type { Writable } from 'node:stream'
import type { Knex } from 'knex'
import { formatPaymentLine } from '../../domain/payment-line.ts'
import { formatRequestLine } from '../../domain/request-line.ts'
import { exportRequests } from '../../requests/sql/export-requests-repository.ts'
import { exportPayments } from '../../search/export/export-payments.ts'
import { type Command, type CommandContext, type CommandInput, parseAccountName } from '../command.ts'
import { refuseOtherThanFile, replaceFile } from '../replace-file.ts'
import { EXIT_GOOD } from '../run-command-line.ts'
import { STORE_VARIABLES, withAccount } from '../with-store.ts'
import { writeFully } from '../write-fully.ts'

type WriteRows = (knex: Knex, accountId: number, out: Writable, signal: AbortSignal) => Promise<number>

/** `export payments --account A`: one line a payment. */
const exportPaymentsCommand: Command = {
  path: ['export', 'payments'],
  summary: 'Write all payments of an account, oldest first, in the form that import reads: one JSON object a line.',
  options: optionsOf('payments'),
  environment: STORE_VARIABLES,
  run: (input, context) => runExport('payment', writePayments, input, context),
}

/** `export requests --account A`: one line a payment request. */
const exportRequestsCommand: Command = {
  path: ['export', 'requests'],
  summary:
    'Write all payment requests of an account, oldest first, in the form that import reads: one JSON object a line.',
  options: optionsOf('payment requests'),
  environment: STORE_VARIABLES,
  run: (input, context) => runExport('payment request', writeRequests, input, context),
}

export const commands: readonly Command[] = [exportRequestsCommand, exportPaymentsCommand]

function optionsOf(things: string): NonNullable<Command['options']> {
  return [
    { name: 'account', value: 'A', help: `account whose ${things} are written`, required: true },
    {
      name: 'output',
      value: 'FILE',
      help: 'file to write, readable only by its owner; replaced once everything is written (default standard output)',
    },
  ]
}

async function runExport(thing: string, write: WriteRows, { options }: CommandInput, context: CommandContext) {
  const name = parseAccountName(options.account)
  const target = options.output === undefined ? undefined : resolve(context.workingFolder, options.output)
  if (target !== undefined) await refuseOtherThanFile('--output', target, ', or leave it out for standard output')
  return withAccount(context, name, async (knex, account) => {
    const writeAll = (out: Writable) => write(knex, account.id, out, context.signal)
    const count = await (target === undefined ? writeAll(context.stdout) : replaceFile(target, writeAll))
    context.stderr.write(`${count.toLocaleString('en')} ${count === 1 ? thing : `${thing}s`}\n`)
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
