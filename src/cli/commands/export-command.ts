import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { lstat, rename, rm } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { Writable } from 'node:stream'
import { finished } from 'node:stream/promises'
import type { Knex } from 'knex'
import { formatPaymentLine } from '../../domain/payment-line.ts'
import { formatRequestLine } from '../../domain/request-line.ts'
import { exportRequests } from '../../requests/sql/request-list-repository.ts'
import { exportPayments } from '../../search/export/export-payments.ts'
import {
  type Command,
  type CommandContext,
  type CommandInput,
  counted,
  EXIT_GOOD,
  UsageError,
  writeFully,
} from '../shared/command.ts'
import { STORE_VARIABLES, withAccount } from '../shared/with-store.ts'

/** Reads all rows of an account, and writes their lines. */
type ExportRows = (
  of: { readonly knex: Knex; readonly accountId: number; readonly signal: AbortSignal },
  write: (lines: readonly string[]) => Promise<void>,
) => Promise<void>

/** `export payments --account A`: one line for each. */
function exportOf(path: string, thing: string, exportRows: ExportRows): Command {
  return {
    path: ['export', path],
    summary: `Write all ${thing}s of an account, oldest first, in the form that import reads: one JSON object a line.`,
    takes: {
      '--account A': `account whose ${thing}s are written`,
      '[--output FILE]':
        'file to write, readable only by its owner; replaced once everything is written (default standard output)',
    },
    environment: STORE_VARIABLES,
    run: (input, context) => runExport(thing, exportRows, input, context),
  }
}

export const commands: readonly Command[] = [
  exportOf('requests', 'payment request', (of, write) =>
    exportRequests(of, (page) => write(page.map(formatRequestLine))),
  ),
  exportOf('payments', 'payment', ({ accountId, ...of }, write) =>
    exportPayments({ ...of, filter: { accountId } }, (page) => write(page.map(formatPaymentLine))),
  ),
]

async function runExport(thing: string, exportRows: ExportRows, { options }: CommandInput, context: CommandContext) {
  const target = options.output === undefined ? undefined : resolve(context.workingFolder, options.output)
  if (target !== undefined) await refuseOtherThanFile(target)
  return withAccount(context, options.account, async (knex, account) => {
    let count = 0
    const writeAll = (out: Writable) =>
      exportRows({ knex, accountId: account.id, signal: context.signal }, async (lines) => {
        count += lines.length
        await writeFully(out, lines.map((line) => `${line}\n`).join(''))
      })
    await (target === undefined ? writeAll(context.stdout) : replaceFile(target, writeAll))
    context.stderr.write(`${counted(count, thing)}\n`)
    return EXIT_GOOD
  })
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
 * Writes a new file beside the target, which is renamed to it once it is complete and on the disk. Only its owner can read it, whatever the
 * mode of the file that it replaces. Its random name keeps others from placing a link there first. A failure leaves no file.
 */
async function replaceFile(target: string, write: (out: Writable) => Promise<void>): Promise<void> {
  const part = `${target}.${randomUUID()}.part`
  const stream = createWriteStream(part, { flags: 'wx', mode: 0o600, flush: true })
  try {
    await once(stream, 'open')
    // An error of the stream is thrown by the next write.
    stream.on('error', () => {})
    await write(stream)
    stream.end()
    await finished(stream)
    await rename(part, target)
  } catch (error) {
    stream.destroy()
    await rm(part, { force: true })
    throw new Error(`${target} was not written`, { cause: error })
  }
}
