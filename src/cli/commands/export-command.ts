import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { lstat, rename, rm } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { Writable } from 'node:stream'
import { finished } from 'node:stream/promises'
import type { Knex } from 'knex'
import { readStoreConfig } from '../../config.ts'
import { formatPaymentLine } from '../../domain/payment-line.ts'
import { formatRequestLine } from '../../domain/request-line.ts'
import { exportRequests } from '../../requests/sql/export-requests-repository.ts'
import { exportPayments } from '../../search/export/export-payments.ts'
import { parseAccountName } from '../account-option.ts'
import { type Command, type CommandContext, type CommandInput, UsageError } from '../command.ts'
import { findAccount } from '../find-account.ts'
import { EXIT_FAILED, EXIT_GOOD } from '../run-command-line.ts'
import { STORE_VARIABLES, withStore } from '../with-store.ts'
import { writeFully } from '../write-fully.ts'

type WriteRows = (knex: Knex, accountId: number, out: Writable, signal: AbortSignal) => Promise<number>

/** `export payments --account A`: one line a payment. */
export const exportPaymentsCommand: Command = {
  path: ['export', 'payments'],
  summary: 'Write all payments of an account, oldest first, in the form that import reads: one JSON object a line.',
  options: optionsOf('payments'),
  environment: STORE_VARIABLES,
  run: (input, context) => runExport('payment', writePayments, input, context),
}

/** `export requests --account A`: one line a payment request. */
export const exportRequestsCommand: Command = {
  path: ['export', 'requests'],
  summary:
    'Write all payment requests of an account, oldest first, in the form that import reads: one JSON object a line.',
  options: optionsOf('payment requests'),
  environment: STORE_VARIABLES,
  run: (input, context) => runExport('payment request', writeRequests, input, context),
}

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
  const config = readStoreConfig(context.environment, context.workingFolder)
  const target = options.output === undefined ? undefined : resolve(context.workingFolder, options.output)
  if (target !== undefined) await refuseOtherThanFile(target)
  return withStore(config, context, async (knex) => {
    const account = await findAccount(knex, name, context)
    if (account === undefined) return EXIT_FAILED
    const count = await writeTo(target, context, (out) => write(knex, account.id, out, context.signal))
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

/**
 * Only a regular file may be replaced: renaming onto a folder fails at the very end, and a device or a link would be lost.
 *
 * @throws UsageError
 */
async function refuseOtherThanFile(target: string): Promise<void> {
  const found = await lstat(target).catch(() => undefined)
  if (found === undefined || found.isFile()) return
  const what = found.isSymbolicLink() ? 'a symbolic link' : 'not a regular file'
  throw new UsageError(`--output is ${target}, which is ${what}: name a file, or leave it out for standard output`)
}

/**
 * Writes to standard output, or to a new file that is renamed to the target once it is complete. Only its owner can read it, whatever the
 * mode of the file that it replaces. Its random name keeps others from placing a link there first.
 */
async function writeTo(
  target: string | undefined,
  { stdout }: CommandContext,
  write: (out: Writable) => Promise<number>,
): Promise<number> {
  if (target === undefined) return write(stdout)
  const part = `${target}.${randomUUID()}.part`
  const stream = createWriteStream(part, { flags: 'wx', mode: 0o600 })
  try {
    await once(stream, 'open')
    // An error of the stream is thrown by the next write.
    stream.on('error', () => {})
    const count = await write(stream)
    stream.end()
    await finished(stream)
    await rename(part, target)
    return count
  } catch (error) {
    stream.destroy()
    await rm(part, { force: true })
    throw error
  }
}
