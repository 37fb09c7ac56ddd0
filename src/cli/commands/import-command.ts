import { open } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import type { Knex } from 'knex'
import { createApiKeyRepository } from '../../auth/sql/api-key-repository.ts'
import { createChainDirectory } from '../../chains/chain-directory.ts'
import type { ChainConfig } from '../../chains/chains-file.ts'
import { createTokenDirectory, fewestDecimals } from '../../chains/token-directory.ts'
import type { Account } from '../../domain/account.ts'
import { symbolOfCurrency } from '../../domain/currency.ts'
import { importPayments } from '../../imports/import-payments.ts'
import { type BadLine, type ImportCounts, importLines, type LineTarget } from '../../imports/lines/import-lines.ts'
import { parseRequestLine } from '../../imports/lines/parse-request.ts'
import { parsedLines } from '../../imports/lines/parsed-lines.ts'
import { createRequestImport } from '../../requests/import-requests.ts'
import { createRequestRepository } from '../../requests/sql/request-repository.ts'
import {
  type Command,
  type CommandContext,
  type CommandInput,
  EXIT_FAILED,
  EXIT_GOOD,
  parseAccountName,
  UsageError,
  writeFully,
} from '../shared/command.ts'
import { readChainsToWrite, readKnownChains } from '../shared/read-chains.ts'
import { STORE_VARIABLES, withStore } from '../shared/with-store.ts'

const takes = {
  FILE: 'one JSON object a line; - is standard input',
  '--account A': 'account to import into; created if there is none',
}

/** `import payments FILE --account A`. */
const importPaymentsCommand: Command = {
  path: ['import', 'payments'],
  summary: 'Import payments in the form that search returns and export writes. Importing them again changes nothing.',
  takes,
  environment: [...STORE_VARIABLES, 'CHAINS_FILE'],
  async run(input, context) {
    const tokens = createTokenDirectory(await readKnownChains(context))
    const decimalsOf = (currency: string) => fewestDecimals(tokens, symbolOfCurrency(currency), currency)
    return runImport(input, context, (knex, of) => importPayments(knex, of, () => new Date(), decimalsOf))
  },
}

/** `import requests FILE --account A`. */
const importRequestsCommand: Command = {
  path: ['import', 'requests'],
  summary:
    'Import payment requests in the form that creating one takes and the list returns. Importing them again changes nothing.',
  takes,
  environment: [...STORE_VARIABLES, 'CHAINS_FILE'],
  async run(input, context) {
    const known = await readChainsToWrite(context)
    return runImport(input, context, (knex, of) => importRequests(knex, of, known))
  },
}

export const commands: readonly Command[] = [importRequestsCommand, importPaymentsCommand]

function importRequests(knex: Knex, of: Account, configs: readonly ChainConfig[]): LineTarget {
  const requests = createRequestImport({
    repository: createRequestRepository(knex),
    known: { chains: createChainDirectory(configs), tokens: createTokenDirectory(configs) },
    now: () => new Date(),
  })
  return parsedLines({
    parse: (json) => requests.read(parseRequestLine(json)),
    write: (items) => requests.write(of, items),
  })
}

async function runImport(
  { positionals: [path = ''], options }: CommandInput,
  context: CommandContext,
  makeTarget: (knex: Knex, account: Account) => LineTarget,
): Promise<number> {
  const name = parseAccountName(options.account)
  const source = await openSource(path, context)
  try {
    return await withStore(context, async (knex) => {
      const of = await createApiKeyRepository(knex).ensureAccount(name)
      const { signal, stderr } = context
      const progress = reportImport(stderr, performance.now.bind(performance))
      const toContinue = 'the counted lines are stored; run the command again to continue'
      const onBatch = (soFar: ImportCounts, bad: readonly BadLine[]) => progress.onBatch(soFar, bad)
      const importing = importLines(source, makeTarget(knex, of), { signal, onBatch })
      const counts = await importing.catch(async (error: unknown) => {
        await progress.end(`failed: ${toContinue}`)
        throw error
      })
      await progress.end(signal.aborted ? `stopped: ${toContinue}` : 'done')
      return signal.aborted || counts.bad > 0 ? EXIT_FAILED : EXIT_GOOD
    })
  } finally {
    source.destroy()
  }
}

/** Large, because the import waits once for each chunk. */
const CHUNK_BYTES = 256 * 1024

async function openSource(path: string, { stdin, workingFolder }: CommandContext): Promise<Readable> {
  if (path === '-') return stdin
  const handle = await open(resolve(workingFolder, path)).catch((error: Error) => {
    throw new UsageError(`${path} cannot be read: ${error.message}`)
  })
  if (!(await handle.stat()).isDirectory()) return handle.createReadStream({ highWaterMark: CHUNK_BYTES })
  await handle.close()
  throw new UsageError(`${path} is a folder`)
}

const REPORT_INTERVAL_MS = 1_000

/**
 * Writes every bad line as `line 17: REASON: message`, and the totals once a second.
 *
 * @param nowMs - a monotonic clock, in milliseconds
 */
function reportImport(stderr: Writable, nowMs: () => number) {
  const startedMs = nowMs()
  // The first batch is reported at once.
  let reportedMs = Number.NEGATIVE_INFINITY
  let latest: ImportCounts = { lines: 0, written: 0, unchanged: 0, bad: 0 }
  // A slow reader slows the import down instead of filling memory. A reader that is gone does not stop it.
  const write = (text: string) => writeFully(stderr, text).catch(() => {})
  const totals = () => {
    const { lines, written, unchanged, bad } = latest
    const seconds = Math.max(nowMs() - startedMs, 1) / 1_000
    const figures = [lines, written, unchanged, bad, Math.round(lines / seconds)].map((n) => n.toLocaleString('en'))
    const [read, wrote, same, wrong, rate] = figures
    return `${read} lines read: ${wrote} written, ${same} unchanged, ${wrong} bad; ${rate} lines/s`
  }
  return {
    async onBatch(counts: ImportCounts, bad: readonly BadLine[]): Promise<void> {
      latest = counts
      if (bad.length > 0)
        await write(bad.map(({ number, error }) => `line ${number}: ${error.reason}: ${error.message}\n`).join(''))
      if (nowMs() - reportedMs < REPORT_INTERVAL_MS) return
      reportedMs = nowMs()
      await write(`${totals()}\n`)
    },
    /** Writes how the import ended, and the totals. */
    end: (how: string) => write(`${how}: ${totals()}\n`),
  }
}
