import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { Writable } from 'node:stream'
import { finished } from 'node:stream/promises'
import type { Knex } from 'knex'
import { createApiKeyRepository } from '../auth/api-key-repository.ts'
import { readStoreConfig } from '../config.ts'
import { formatPaymentLine } from '../domain/payment-line.ts'
import { exportPayments } from '../search/export-payments.ts'
import { parseAccountName } from './account-option.ts'
import type { Command, CommandContext } from './command.ts'
import { EXIT_FAILED, EXIT_GOOD } from './run-command-line.ts'
import { STORE_VARIABLES, withStore } from './with-store.ts'
import { writeFully } from './write-fully.ts'

/** `export payments --account A`: a line a payment. */
export const exportPaymentsCommand: Command = {
  path: ['export', 'payments'],
  summary: 'Write all payments of an account, oldest first, as lines that import takes.',
  options: [
    { name: 'account', value: 'A', help: 'account whose payments are written', required: true },
    {
      name: 'output',
      value: 'FILE',
      help: 'file to write; it is replaced when all is written (default standard output)',
    },
  ],
  environment: STORE_VARIABLES,
  async run({ options }, context) {
    const name = parseAccountName(options.account)
    const config = readStoreConfig(context.environment, context.workingFolder)
    return withStore(config, context, async (knex) => {
      const account = await createApiKeyRepository(knex).findAccount(name)
      if (account === undefined) {
        context.stderr.write(`there is no account "${name}"\n`)
        return EXIT_FAILED
      }
      const count = await writeTo(options.output, context, (out) =>
        writePayments(knex, account.id, out, context.signal),
      )
      context.stderr.write(`${count.toLocaleString('en')} ${count === 1 ? 'payment' : 'payments'}\n`)
      return EXIT_GOOD
    })
  },
}

async function writePayments(knex: Knex, accountId: number, out: Writable, signal: AbortSignal): Promise<number> {
  let count = 0
  await exportPayments({ knex, filter: { accountId }, signal }, async (page) => {
    count += page.length
    if (page.length > 0) await writeFully(out, page.map((payment) => `${formatPaymentLine(payment)}\n`).join(''))
  })
  return count
}

/** Writes to standard output, or to a file that takes its name when it is whole. */
async function writeTo(
  path: string | undefined,
  { stdout, workingFolder }: CommandContext,
  write: (out: Writable) => Promise<number>,
): Promise<number> {
  if (path === undefined) return write(stdout)
  const target = resolve(workingFolder, path)
  const part = `${target}.part`
  const stream = createWriteStream(part)
  try {
    await once(stream, 'open')
    // what it meets is thrown where something is written next
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
